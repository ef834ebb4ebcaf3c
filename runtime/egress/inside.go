package egress

import (
	"net/netip"
	"slices"
)

// insideRanges are the addresses that lead nowhere public: IANA's registries of
// special purpose addresses, and what clouds put elsewhere.
func insideRanges() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // Azure's own, on every virtual machine
		"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// inside reports whether an address, unmapped and without a zone, leads nowhere
// public. One that wraps another is judged by that.
func inside(addr netip.Addr) bool {
	if !addr.IsValid() {
		return true
	}
	if addr.Is6() {
		b := addr.As16()
		switch {
		case netip.MustParsePrefix("64:ff9b::/96").Contains(addr): // NAT64
			return inside(netip.AddrFrom4([4]byte(b[12:16])))
		case netip.MustParsePrefix("2002::/16").Contains(addr): // 6to4
			return inside(netip.AddrFrom4([4]byte(b[2:6])))
		case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
			if inside(netip.AddrFrom4([4]byte(b[12:16]))) {
				return true
			}
		}
	}
	return slices.ContainsFunc(insideRanges(), func(p netip.Prefix) bool { return p.Contains(addr) })
}
