package egress

import "net/netip"

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// The address rule. IPv4 is everything but these; IPv6 is global unicast but these. 168.63.129.16 looks public and is the
// platform address of one cloud, from which machine credentials can be read.
var (
	privateV4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
		"240.0.0.0/4", "168.63.129.16/32")
	globalV6  = netip.MustParsePrefix("2000::/3")
	privateV6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

// publicAddress reports whether a may be dialled for a destination nobody vouches for. An IPv4 address written as IPv6
// (::ffff:127.0.0.1) is refused rather than unwrapped: no public name resolves to one.
func publicAddress(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
		return false
	}
	denied := privateV4
	if a.Is6() {
		if !globalV6.Contains(a) {
			return false
		}
		denied = privateV6
	}
	for _, p := range denied {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
