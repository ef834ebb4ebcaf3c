package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"testing"
)

func TestCheck_DeniesWhatIsInside(t *testing.T) {
	for _, text := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
		"192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "168.63.129.16",
		"::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1", "2002:a00:1::", "2001::1", "2001:db8::1", "2600::5efe:a00:1", "2600::200:5efe:7f00:1",
	} {
		var denied *DeniedError
		if err := (Policy{}).Check(netip.AddrPortFrom(netip.MustParseAddr(text), 80)); !errors.As(err, &denied) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2606:4700::1111", "2002:101:101::1", "169.253.0.1"} {
		if err := (Policy{}).Check(netip.AddrPortFrom(netip.MustParseAddr(text), 80)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParse(t *testing.T) {
	p, err := Parse([]string{"10.1.0.0/16", "192.168.7.7", "127.0.0.1:8931", "[::1]:9000", "mcp.internal", "*.corp.example:443", "Fd00::1"})
	if err != nil {
		t.Fatal(err)
	}
	for address, allowed := range map[string]bool{
		"10.1.2.3:80": true, "10.2.0.1:80": false, "192.168.7.7:1": true, "192.168.7.8:1": false, "127.0.0.1:8931": true, "127.0.0.1:8932": false,
		"[::ffff:127.0.0.1]:8931": true, "[::1]:9000": true, "[::1]:9001": false, "[fd00::1]:5": true, "[fd00::1%lo]:5": true,
	} {
		if err := p.Check(netip.MustParseAddrPort(address)); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
	for host, allowed := range map[string]bool{
		"mcp.internal": true, "MCP.Internal.": true, "a.corp.example": true, "a.b.corp.example": true, "corp.example": false, "xcorp.example": false, "evil-mcp.internal": false, "mcp.internal.evil.example": false,
	} {
		if p.named(host, 443) != allowed {
			t.Errorf("%s", host)
		}
	}
	if p.named("a.corp.example", 80) {
		t.Error("another port is allowed")
	}
	for _, entry := range []string{"", "10.1.0.0/33", "127.0.0.1:0", "127.0.0.1:http", "http://x", "a b", "*", "10.1.2.300", "x..y", "*.*.x"} {
		if _, err := Parse([]string{entry}); err == nil {
			t.Errorf("%q was taken", entry)
		}
	}
}

func TestCheckURL(t *testing.T) {
	p, err := Parse([]string{"localhost:8931", "10.0.0.1:80"})
	if err != nil {
		t.Fatal(err)
	}
	for text, allowed := range map[string]bool{
		"https://example.com/mcp": true, "http://localhost/": false, "http://LOCALHOST./": false, "http://a.localhost/": false, "http://localhost:8931/": true,
		"http://10.0.0.1/": true, "https://10.0.0.1/": false, "http://[::1]/": false, "http://[::ffff:169.254.169.254]/": false, "http://1.1.1.1:99999/": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CheckURL(u); (err == nil) != allowed {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The decision is made where the connection is made: whatever the name, and
// wherever a redirect leads.
func TestTransport_ChecksWhenItDials(t *testing.T) {
	reached := 0
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer inner.Close()
	t.Setenv("HTTP_PROXY", inner.URL) // before the first request: what there is then is kept
	port := inner.Listener.Addr().(*net.TCPAddr).Port
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound))
	defer outer.Close()
	get := func(p Policy, to string) error {
		way := p.Transport()
		defer way.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: way}).Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	var denied *DeniedError
	byName := "http://" + net.JoinHostPort("localhost", strconv.Itoa(port))
	for _, to := range []string{inner.URL, byName, "http://" + net.JoinHostPort("0.0.0.0", strconv.Itoa(port)), "http://" + net.JoinHostPort("::ffff:127.0.0.1", strconv.Itoa(port)), "http://2130706433:" + strconv.Itoa(port), "http://0x7f.1:" + strconv.Itoa(port)} {
		if err := get(Policy{}, to); err == nil || reached > 0 {
			t.Errorf("%s: %v", to, err)
		}
	}
	if err := get(Policy{}, inner.URL); !errors.As(err, &denied) {
		t.Errorf("%v", err)
	}
	first, err := Parse([]string{outer.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := get(first, outer.URL); !errors.As(err, &denied) || reached > 0 {
		t.Errorf("the redirect was followed: %v", err)
	}
	all, err := Parse(Loopback())
	if err != nil {
		t.Fatal(err)
	}
	if err := get(all, "http://192.168.0.1/"); !errors.As(err, &denied) || reached > 0 {
		t.Errorf("a proxy was asked: %v", err)
	}
	for _, to := range []string{inner.URL, byName, outer.URL} {
		if err := get(all, to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	if reached != 3 {
		t.Errorf("it was reached %d times", reached)
	}
	if _, err := all.Dial(context.Background(), "tcp", "no port"); err == nil {
		t.Error("an address without a port was taken")
	}
}
