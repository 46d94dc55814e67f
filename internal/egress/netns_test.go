//go:build linux

package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The rule has no switch that turns it off, so it is tested as it is: in a network of its own, where addresses that look public and
// private ones are both on loopback, names come from a hosts file, and the certificate authority is ours.

const inside = "EGRESS_TEST_NETWORK"

const hosts = `93.184.216.34 mcp.vendor.example other-name.vendor.example
93.184.216.34 mixed.vendor.example
10.0.0.1 mixed.vendor.example
127.0.0.1 inward.vendor.example
10.0.0.1 ten.vendor.example
169.254.169.254 machine.vendor.example
::1 six.vendor.example
`

func TestTheRealRuleInANetworkOfItsOwn(t *testing.T) {
	if dir := os.Getenv(inside); dir != "" {
		insideTheNetwork(t, dir)
		return
	}
	dir := t.TempDir()
	certify(t, dir)
	write(t, filepath.Join(dir, "hosts"), []byte(hosts))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheRealRuleInANetworkOfItsOwn$", "-test.count=1")
	cmd.Env = append(os.Environ(), inside+"="+dir, "SSL_CERT_FILE="+filepath.Join(dir, "cert.pem"), "SSL_CERT_DIR="+dir,
		"HTTPS_PROXY=http://127.0.0.1:443") // where a private listener would meet whoever took it
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		onThisMachine(t) // which allows no namespaces
		return
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestTheRealRuleOnThisMachine(t *testing.T) { onThisMachine(t) }

// onThisMachine asks what can be asked without a network of one's own: the machine's own addresses are refused at the dial, by name and by
// number. That a listener there met nobody is known from whom it meets first.
func onThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	named := dialer{Destination{scheme: "https", host: "localhost", port: port}}
	if _, err := named.plain(t.Context(), "tcp", "localhost:"+port); !errors.Is(err, ErrRefused) {
		t.Errorf("localhost: %v", err)
	}
	for _, a := range ownAddresses(t) {
		if _, err := dialAny(t.Context(), []netip.Addr{a}, port); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", a, err)
		}
	}
	vouched := dialer{Destination{scheme: "http", host: "127.0.0.1", port: port, operator: true}}
	c, err := vouched.plain(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	met, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer met.Close()
	if met.RemoteAddr().String() != c.LocalAddr().String() {
		t.Errorf("%s was connected to before the operator's address was", l.Addr())
	}
}

// ownAddresses are those of this machine that are not public, loopback among them.
func ownAddresses(t *testing.T) (out []netip.Addr) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !publicAddress(p.Addr()) {
			out = append(out, p.Addr())
		}
	}
	if len(out) == 0 {
		t.Fatal("this machine has not even a loopback address")
	}
	return out
}

func insideTheNetwork(t *testing.T, dir string) {
	for label, address := range map[string]string{"lo": "127.0.0.1", "lo:1": "93.184.216.34", "lo:2": "10.0.0.1", "lo:3": "169.254.169.254"} {
		assign(t, label, address)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(filepath.Join(dir, "hosts"), "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	public := listen(t, dir, "93.184.216.34:443")
	private := []*atomic.Int64{listen(t, dir, "127.0.0.1:443"), listen(t, dir, "10.0.0.1:443"), listen(t, dir, "169.254.169.254:443")}

	for _, build := range []func(Destination, Options) *http.Client{Client, Dispatch} {
		before := public.Load()
		body, r, err := request(t, build, "mcp.vendor.example")
		if err != nil || body != "vendor" || r.Status != 200 || !r.Complete || public.Load() != before+1 {
			t.Errorf("the public service: %q %v %+v", body, err, r)
		}
		for _, name := range []string{"mixed", "inward", "ten", "machine", "six"} {
			if _, r, err := request(t, build, name+".vendor.example"); !errors.Is(err, ErrRefused) || r.Failure != Refused || r.BytesWritten != 0 {
				t.Errorf("%s: %v %+v", name, err, r)
			}
		}
		if _, r, err := request(t, build, "other-name.vendor.example"); err == nil || r.Failure != Untrusted || r.BytesWritten != 0 {
			t.Errorf("a certificate for another name: %v %+v", err, r)
		}
		if public.Load() != before+2 { // the second is the handshake that our side ended
			t.Errorf("%d connections to the public address", public.Load()-before)
		}
	}
	examined(t)
	private = append(private, listen(t, dir, "127.0.0.1:27017"), listen(t, dir, "10.0.0.1:27017"), listen(t, dir, "169.254.169.254:27017"))
	databases(t, listen(t, dir, "93.184.216.34:27017"))
	for i, n := range private {
		if n.Load() != 0 {
			t.Errorf("private listener %d was connected to", i)
		}
	}
}

// examined says the same in parts, to people who may know.
func examined(t *testing.T) {
	t.Helper()
	for name, want := range map[string]Way{
		"mcp": {}, "nobody": {Stopped: AtName, Failure: Unresolved}, "mixed": {Stopped: AtAddress, Failure: Refused}, "ten": {Stopped: AtAddress, Failure: Refused},
		"inward": {Stopped: AtAddress, Failure: Refused}, "other-name": {Stopped: AtTLS, Failure: Untrusted},
	} {
		d, err := Public("https://" + name + ".vendor.example/mcp")
		if err != nil {
			t.Fatal(err)
		}
		got := Examine(t.Context(), d)
		if until := got.Until; name == "mcp" && until.Before(time.Now()) {
			t.Errorf("the certificate ends %v", until)
		}
		if got.Until = (time.Time{}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// databases asks the same of the servers of a database, which name each other while a driver runs.
func databases(t *testing.T, public *atomic.Int64) {
	t.Helper()
	d, err := Database("mongodb://mcp.vendor.example")
	if err != nil {
		t.Fatal(err)
	}
	r := Through(d)
	c, err := r.DialContext(t.Context(), "tcp", "mcp.vendor.example:27017")
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := c.(*tls.Conn); !ok || !s.ConnectionState().HandshakeComplete {
		t.Error("the connection is not encrypted")
	}
	_ = c.Close()
	for _, name := range []string{"mixed", "inward", "ten", "machine", "six"} {
		if _, err := r.DialContext(t.Context(), "tcp", name+".vendor.example:27017"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.DialContext(t.Context(), "tcp", "other-name.vendor.example:27017"); FailureOf(err) != Untrusted {
		t.Errorf("a certificate for another name: %v", err)
	}
	if public.Load() != 2 {
		t.Errorf("%d connections to the public address", public.Load())
	}
}

func request(t *testing.T, build func(Destination, Options) *http.Client, host string) (string, Record, error) {
	t.Helper()
	d, err := Public("https://" + host + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	return send(t, t.Context(), build(d, Options{Timeout: 5 * time.Second}), d.URL())
}

// listen serves TLS on an address and counts connections.
func listen(t *testing.T, dir, address string) *atomic.Int64 {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	n := new(atomic.Int64)
	srv := &http.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "vendor") }),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				n.Add(1)
			}
		},
	}
	go func() { _ = srv.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = srv.Close() })
	return n
}

// assign gives loopback an address and brings it up.
func assign(t *testing.T, label, address string) {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq(label)
	if err != nil {
		t.Fatal(err)
	}
	if err = r.SetInet4Addr(net.ParseIP(address).To4()); err == nil {
		err = unix.IoctlIfreq(s, unix.SIOCSIFADDR, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err = unix.NewIfreq(label); err == nil {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// certify writes a certificate that is its own authority.
func certify(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vendor"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"mcp.vendor.example", "mixed.vendor.example", "inward.vendor.example", "ten.vendor.example", "machine.vendor.example", "six.vendor.example"},
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	write(t, filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
