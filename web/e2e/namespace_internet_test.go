//go:build linux

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// publicAddress is where every public service of this network is.
var publicAddress = netip.MustParseAddr("93.184.216.34")

// inward are addresses on which nobody may ever be called.
var inward = []string{"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "198.18.0.1", "168.63.129.16"}

// internet is the world around the server: names, services by name with their certificates, and what was heard where.
type internet struct {
	t  *testing.T
	ca *authority

	mu     sync.Mutex
	names  map[string]func(question int) []netip.Addr // absent: the public address
	asked  map[string]int                             // how often a name was asked for
	sites  map[string]http.Handler
	faults map[string]func(*tls.ClientHelloInfo) (*tls.Config, error) // of handshakes, by name
	calls  []call
	trap   []string // who was called although nobody may be
}

// call is one request that reached a public service.
type call struct{ host, text string }

func newInternet(t *testing.T) *internet {
	t.Helper()
	n := &internet{
		t: t, ca: newAuthority(t), names: map[string]func(int) []netip.Addr{}, asked: map[string]int{}, sites: map[string]http.Handler{},
		faults: map[string]func(*tls.ClientHelloInfo) (*tls.Config, error){},
	}
	for i, address := range append([]string{publicAddress.String()}, inward...) {
		assign(t, fmt.Sprint("lo:", i), address)
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	bound(t, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
	bound(t, "/etc/hosts", "127.0.0.1 localhost\n")
	n.answersNames(t)
	for _, address := range inward {
		for _, port := range []string{"80", "443"} {
			n.watches(t, net.JoinHostPort(address, port))
		}
	}
	n.serves(t)
	return n
}

// assign gives loopback an address and brings it up.
func assign(t *testing.T, label, address string) {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(s)
	if strings.HasPrefix(address, "127.") {
		label = "lo"
	}
	r, err := unix.NewIfreq(label)
	must(t, err)
	must(t, r.SetInet4Addr(net.ParseIP(address).To4()))
	must(t, unix.IoctlIfreq(s, unix.SIOCSIFADDR, r))
	r, err = unix.NewIfreq(label)
	must(t, err)
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	must(t, unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r))
}

// answersNames is the one name server of this network. It remembers nothing and lets nobody remember.
func (n *internet) answersNames(t *testing.T) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:53")
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			size, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:size]) != nil || len(m.Questions) != 1 {
				continue
			}
			if answer, err := n.resolved(m); err == nil {
				_, _ = c.WriteTo(answer, from)
			}
		}
	}()
}

func (n *internet) resolved(m dnsmessage.Message) ([]byte, error) {
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired, RecursionAvailable: true}
	m.Additionals = nil
	for _, a := range n.addresses(strings.TrimSuffix(strings.ToLower(q.Name.String()), "."), q.Type) {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			r.Body = &dnsmessage.AResource{A: a.As4()}
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			r.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, r)
	}
	return m.Pack()
}

func (n *internet) addresses(name string, kind dnsmessage.Type) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kind == dnsmessage.TypeA {
		n.asked[name]++
	}
	if f := n.names[name]; f != nil {
		return f(n.asked[name])
	}
	return []netip.Addr{publicAddress}
}

// watches notes whoever connects where nobody may.
func (n *internet) watches(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.mu.Lock()
			n.trap = append(n.trap, address)
			n.mu.Unlock()
			_ = c.Close()
		}
	}()
}

// nothingInward makes sure that nobody was called where nobody may be.
func (n *internet) nothingInward(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.trap) > 0 {
		t.Errorf("inside addresses were connected to: %v", n.trap)
		n.trap = nil
	}
}

// serves is every public service of this network. A connection serves one request, so that each is dialled for.
func (n *internet) serves(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(publicAddress, 443).String())
	must(t, err)
	s := &http.Server{
		Handler: http.HandlerFunc(n.serve), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{GetConfigForClient: n.handshake},
	}
	s.SetKeepAlivesEnabled(false)
	go func() { _ = s.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = s.Close() })
}

func (n *internet) handshake(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	n.mu.Lock()
	fault := n.faults[hello.ServerName]
	n.mu.Unlock()
	if fault != nil {
		return fault(hello)
	}
	return n.ca.serving(certificate{name: hello.ServerName}), nil
}

func (n *internet) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	n.mu.Lock()
	site := n.sites[r.Host]
	n.calls = append(n.calls, call{r.Host, fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header, " ", string(body))})
	n.mu.Unlock()
	if site == nil {
		http.NotFound(w, r)
		return
	}
	site.ServeHTTP(w, r)
}

// heard counts what reached a service.
func (n *internet) heard(host string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.calls {
		if c.host == host {
			count++
		}
	}
	return count
}

// hosts lists where a text was heard.
func (n *internet) hosts(text string) (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.calls {
		if strings.Contains(c.text, text) && !slices.Contains(out, c.host) {
			out = append(out, c.host)
		}
	}
	return out
}

// looked is how often a name was asked for.
func (n *internet) looked(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[name]
}

// becomes changes a service until the test ends.
func (n *internet) becomes(t *testing.T, host string, h http.HandlerFunc) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.sites[host]
	n.sites[host] = h
	t.Cleanup(func() { n.mu.Lock(); n.sites[host] = was; n.mu.Unlock() })
}

// resolves changes a name until the test ends.
func (n *internet) resolves(t *testing.T, name string, to func(question int) []netip.Addr) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name], n.asked[name] = to, 0
	t.Cleanup(func() { n.mu.Lock(); delete(n.names, name); n.mu.Unlock() })
}

// greets changes the handshake of a service until the test ends.
func (n *internet) greets(t *testing.T, name string, f func(*tls.ClientHelloInfo) (*tls.Config, error)) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[name] = f
	t.Cleanup(func() { n.mu.Lock(); delete(n.faults, name); n.mu.Unlock() })
}

// trust is what makes a program believe the authority of this network, and try every proxy there could be.
func (n *internet) trust(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "authority.pem")
	must(t, os.WriteFile(file, n.ca.pem, 0o600))
	env := []string{"SSL_CERT_FILE=" + file, "SSL_CERT_DIR=" + filepath.Join(dir, "none"), "NO_PROXY=", "no_proxy="}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"} {
		env = append(env, name+"=http://10.0.0.1:443") // where whoever took it would be met
	}
	return env
}

// browser is a person's, in this network.
func (n *internet) browser() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: n.ca.pool}, DisableKeepAlives: true},
	}
}
