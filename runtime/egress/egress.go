// Package egress decides where this process connects to when a tenant named the
// address: nowhere inside, unless the operator allows it.
//
// A URL says little about where it leads. Its name may resolve to an address of
// this machine or of its network, and to another one when it is asked again. So
// the decision is made when the connection is made, on the address itself, after
// names were resolved; redirects and names that change come to the same place. No
// proxy of the environment is used: it would connect in this process's stead, and
// decide nothing.
//
// Denied are loopback, private, link-local, shared (CGNAT), multicast and reserved
// addresses, and those of clouds' metadata services; also where an IPv6 address
// only wraps them.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// DeniedError says that an address is not one to connect to.
type DeniedError struct{ Address string }

// Error names the address and the way out. It is for the operator: a tenant must
// not learn what a name resolves to in here.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("connections to %s are not allowed; if they should be, name it in --egress-allow", e.Address)
}

// Policy says where connections may go. The zero value allows what is public. It
// is safe for concurrent use.
type Policy struct{ allowed []rule }

// rule allows addresses, or a name whatever it resolves to.
type rule struct {
	prefix netip.Prefix
	name   string // in lower case; *.example.com: all below it
	port   uint16 // 0: any
}

// Loopback are the entries that allow this machine's own addresses.
func Loopback() []string { return []string{"127.0.0.0/8", "::1/128", "localhost"} }

// Parse reads what is allowed: an address (10.1.2.3), a CIDR (10.1.0.0/16), a name
// (mcp.internal) or all names below one (*.internal), each but a CIDR with a
// port if only that is meant (127.0.0.1:8931, [::1]:8931). The error names every
// entry that cannot be read.
func Parse(allow []string) (Policy, error) {
	var p Policy
	var errs []error
	for _, entry := range allow {
		r, err := parseRule(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("%.128q %w", entry, err))
			continue
		}
		p.allowed = append(p.allowed, r)
	}
	return p, errors.Join(errs...)
}

func parseRule(entry string) (rule, error) {
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		return rule{prefix: prefix.Masked()}, nil
	}
	if addr, err := netip.ParseAddr(entry); err == nil {
		return ofAddress(addr, 0), nil
	}
	host, port := entry, uint16(0)
	if h, p, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return rule{}, errors.New("has a port that is not 1 to 65535")
		}
		host, port = h, uint16(n)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return ofAddress(addr, port), nil
	}
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); isName(strings.TrimPrefix(name, "*.")) {
		return rule{name: name, port: port}, nil
	}
	return rule{}, errors.New("is not an address, a CIDR such as 10.1.0.0/16, or a host")
}

func ofAddress(addr netip.Addr, port uint16) rule {
	addr = addr.Unmap().WithZone("")
	return rule{prefix: netip.PrefixFrom(addr, addr.BitLen()), port: port}
}

func isName(name string) bool {
	for _, label := range strings.Split(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	return strings.Trim(last, "0123456789") != "" // else it is an address that was mistyped
}

// named reports whether a host is allowed by its name.
func (p Policy) named(host string, port uint16) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(p.allowed, func(r rule) bool {
		if r.name == "" || r.port != 0 && r.port != port {
			return false
		}
		below, all := strings.CutPrefix(r.name, "*")
		return r.name == host || all && strings.HasSuffix(host, below) && len(host) > len(below)
	})
}

// Check says whether a connection may go to an address, as a *DeniedError.
func (p Policy) Check(to netip.AddrPort) error {
	addr := to.Addr().WithZone("").Unmap()
	if slices.ContainsFunc(p.allowed, func(r rule) bool {
		return r.name == "" && r.prefix.Contains(addr) && (r.port == 0 || r.port == to.Port())
	}) || !inside(addr) {
		return nil
	}
	return &DeniedError{to.String()}
}

// Dial connects over TCP if it is allowed to. The error of an address that is not
// is, or wraps, a *DeniedError.
func (p Policy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return p.dialBy(ctx, nil, network, address)
}

// dialBy is Dial with a resolver; nil is that of the system.
func (p Policy) dialBy(ctx context.Context, names *net.Resolver, network, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("the port of %.128q is not a number", address)
	}
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Resolver: names}
	if !p.named(host, uint16(port)) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return &DeniedError{address}
			}
			return p.Check(to)
		}
	}
	return d.DialContext(ctx, network, address)
}

// Transport returns what makes HTTP requests under the policy, without a proxy.
// Each call returns another one, with connections of its own.
func (p Policy) Transport() *http.Transport {
	return &http.Transport{
		DialContext: p.Dial, ForceAttemptHTTP2: true, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
	}
}

// CheckURL says in advance that a URL names an address that is denied, so that
// its author learns it; what a name resolves to is found out by Dial alone.
func (p Policy) CheckURL(u *url.URL) error {
	port := uint64(443)
	if u.Scheme == "http" {
		port = 80
	}
	if text := u.Port(); text != "" {
		var err error
		if port, err = strconv.ParseUint(text, 10, 16); err != nil {
			return &DeniedError{u.Host}
		}
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if p.named(host, uint16(port)) {
		return nil
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return p.Check(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)))
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return p.Check(netip.AddrPortFrom(addr, uint16(port)))
	}
	return nil
}
