package egress

import (
	"net/netip"
	"strings"
	"testing"

	"countersign/internal/fault"
)

func TestPublicAddressesOfServicesAreAccepted(t *testing.T) {
	for raw, origin := range map[string]string{
		"https://mcp.linear.app/mcp":                    "https://mcp.linear.app",
		"https://mcp.example.com":                       "https://mcp.example.com",
		"HTTPS://MCP.Example.COM/Path?x=1&y=%20":        "https://mcp.example.com",
		"https://mcp.example.com:443/mcp":               "https://mcp.example.com",
		"https://xn--xample-hva.com/":                   "https://xn--xample-hva.com",
		"https://knowledge-mcp.global.api.aws":          "https://knowledge-mcp.global.api.aws",
		"https://a.b.c.d.example.co.uk/very/deep?q=a+b": "https://a.b.c.d.example.co.uk",
		"https://testing.localhost.example/":            "https://testing.localhost.example",
	} {
		d, err := Public(raw)
		if err != nil || d.Origin() != origin || d.URL() != raw || d.Overridden() {
			t.Errorf("%s: %q %v", raw, d.Origin(), err)
		}
	}
}

func TestEachRefusedAddressHasItsSentence(t *testing.T) {
	for raw, part := range map[string]string{
		"":                                                      "complete address",
		"mcp.example.com":                                       "complete address",
		"//mcp.example.com/":                                    "https://",
		"https:///mcp":                                          "complete address",
		"https:mcp.example.com":                                 "complete address",
		"http://mcp.example.com":                                "https://",
		"ftp://mcp.example.com":                                 "https://",
		"https://mcp.example.com:8443":                          "port 443",
		"https://mcp.example.com:0":                             "port 443",
		"https://mcp.example.com:":                              "colon",
		"https://mcp.example.com:99999999/":                     "port 443",
		"https://mcp.example.com:-1/":                           "complete address",
		"https://user@mcp.example.com/":                         "user name",
		"https://user:pw@mcp.example.com/":                      "user name",
		"https://a@127.0.0.1@b.example/":                        "user name",
		"https://mcp.example.com/#x":                            "fragment",
		"https://mcp.example.com/#":                             "fragment",
		"https://127.0.0.1/":                                    "IP address",
		"https://[::1]/":                                        "IP address",
		"https://[::ffff:7f00:1]/":                              "IP address",
		"https://1.1.1.1/":                                      "IP address",
		"https://127.1/":                                        "IP address",
		"https://2130706433/":                                   "IP address",
		"https://0x7f000001/":                                   "IP address",
		"https://0x7f.1/":                                       "IP address",
		"https://0177.0.0.1/":                                   "IP address",
		"https://127.0.0.1./":                                   "IP address",
		"https://%31%32%37.0.0.1/":                              "complete address",
		"https://localhost/":                                    "private network",
		"https://LOCALHOST/":                                    "private network",
		"https://foo.localhost/":                                "private network",
		"https://printer.local/":                                "private network",
		"https://db.internal/":                                  "private network",
		"https://api.ns.svc/":                                   "private network",
		"https://api.ns.svc.cluster.local/":                     "private network",
		"https://nas.home.arpa/":                                "private network",
		"https://abc.onion/":                                    "private network",
		"https://crm.test/":                                     "private network",
		"https://intranet/":                                     "full name",
		"https://mcp.example.com./":                             "well-formed",
		"https://mcp..example.com/":                             "well-formed",
		"https://-mcp.example.com/":                             "well-formed",
		"https://mcp_x.example.com/":                            "well-formed",
		"https://mcp.example.com\\@127.0.0.1/":                  "backslash",
		"https://mcp.example.com/a b":                           "space",
		"https://mcp.example.com/\n":                            "control",
		"https://ⓔxample.com/":                                  "xn--",
		"https://127。0。0。1/":                                    "xn--",
		"https://mcp.example.com%2f@127.0.0.1/":                 "user name",
		"https://" + strings.Repeat("a.", 130) + "example.com/": "well-formed",
		"https://mcp.example.com/" + strings.Repeat("a", 2048):  "2048",
	} {
		_, err := Public(raw)
		f, ok := fault.As(err)
		if !ok || f.Kind != fault.Invalid || f.Field != "url" || !strings.Contains(f.What, part) {
			t.Errorf("%q: %v, want a sentence about %q", raw, err, part)
		}
	}
}

func TestOnlyAnOperatorReachesPrivateAddresses(t *testing.T) {
	for raw, origin := range map[string]string{
		"http://127.0.0.1:9001/mcp": "http://127.0.0.1:9001",
		"http://[::1]:9001/mcp":     "http://[::1]:9001",
		"http://crm.internal/":      "http://crm.internal",
		"https://localhost:8443/":   "https://localhost:8443",
		"http://localhost:80/":      "http://localhost",
	} {
		d, err := Operator(raw)
		if err != nil || d.Origin() != origin || !d.Overridden() {
			t.Errorf("%s: %q %v", raw, d.Origin(), err)
		}
	}
	for _, raw := range []string{"", "ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "http://127.0.0.1/#x", "127.0.0.1:9001", "unix:/tmp/s"} {
		if _, err := Operator(raw); err == nil {
			t.Errorf("%q was accepted", raw)
		}
	}
}

func TestADestinationHasOneOrigin(t *testing.T) {
	d, err := Public("https://api.example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := d.At("https://api.example.com/v1/orders?x=1"); err != nil || e.URL() != "https://api.example.com/v1/orders?x=1" {
		t.Error(err)
	}
	for _, raw := range []string{"https://api.example.com.evil.example/v1", "http://api.example.com/v1", "https://api.example.com:8443/", "/v1", "https://evil.example/api.example.com"} {
		if _, err := d.At(raw); err == nil {
			t.Errorf("%s is on the same origin", raw)
		}
	}
	if !(Destination{}).IsZero() || (Destination{}).Origin() != "" {
		t.Error("the zero destination goes somewhere")
	}
}

func TestTheAddressTable(t *testing.T) {
	private := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
		"239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8",
		"::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:20::1", "2001:1ff:ffff::1",
		"2001:db8::1", "2002:7f00:1::", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2606:4700::1%1",
	}
	for _, s := range private {
		if publicAddress(netip.MustParseAddr(s)) {
			t.Errorf("%s may be dialled", s)
		}
	}
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "172.15.255.255",
		"172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15", "168.63.129.17",
		"140.82.112.3", "2606:4700:4700::1111", "2a00:1450:4001::200e", "2001:200::1", "2001:4860:4860::8888", "3ffe::1", "2003::1",
	} {
		if !publicAddress(netip.MustParseAddr(s)) {
			t.Errorf("%s may not be dialled", s)
		}
	}
	if publicAddress(netip.Addr{}) {
		t.Error("no address at all may be dialled")
	}
}

func FuzzPublicNeverAcceptsWhatItWouldNotDial(f *testing.F) {
	for _, s := range []string{"https://mcp.example.com/mcp", "https://127.0.0.1", "https://a@b.example/", "https://[::1]:443/", "https://x.test", "https://0x7f.1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		d, err := Public(raw)
		if err != nil {
			if _, ok := fault.As(err); !ok {
				t.Fatalf("%q: %v is no fault", raw, err)
			}
			return
		}
		if d.scheme != "https" || d.port != "443" || isLiteral(d.host) || !wellFormed(d.host) || !strings.Contains(d.host, ".") || d.operator {
			t.Fatalf("%q became %+v", raw, d)
		}
	})
}
