package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
)

// names is a DNS server whose answers change: each question for an address gets the next list,
// and the last one again and again.
type names struct {
	mu    sync.Mutex
	lists [][]netip.Addr
	asked int
}

// resolver starts the server, and returns what asks it.
func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for question := make([]byte, 512); ; {
			size, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			if _, err := server.WriteTo(n.answer(question[:size]), from); err != nil {
				return
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answer answers a question of one name: its header has 12 bytes, its type stands after the name.
func (n *names) answer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	out := append([]byte(nil), question[:end+5]...)
	binary.BigEndian.PutUint16(out[2:], 0x8180) // an answer, without an error
	binary.BigEndian.PutUint64(out[4:], 1<<48)  // one question
	if kind != 1 {                              // only A
		return out
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.lists[min(n.asked, len(n.lists)-1)]
	n.asked++
	binary.BigEndian.PutUint16(out[6:], uint16(len(list)))
	for _, addr := range list {
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name, A, IN, lasts 0 s
		out = append(out, addr.AsSlice()...)
	}
	return out
}

// door is a listener that counts who comes.
func door(t *testing.T, address string) (port string, came func() int) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var mu sync.Mutex
	n := 0
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			n++
			mu.Unlock()
			_ = conn.Close()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// A name that resolved to an allowed address when it was looked at, and to another one when the
// connection is made, does not lead there, nor does one that has both kinds of addresses.
func TestDial_NameThatChangesItsAddress(t *testing.T) {
	allowed, inner := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")
	port, came := door(t, "127.0.0.1:0")
	_, open := door(t, "127.0.0.2:"+port)
	p, err := Parse([]string{"127.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	n := &names{lists: [][]netip.Addr{{allowed}, {allowed}, {inner}}}
	resolver := n.resolver(t)
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.example.")
	if err != nil || len(seen) != 1 || p.Check(netip.AddrPortFrom(seen[0], uint16(number))) != nil {
		t.Fatalf("at first: %v, %v", seen, err)
	}
	target := "rebind.example.:" + port
	conn, err := p.dialBy(t.Context(), resolver, "tcp4", target)
	if err != nil {
		t.Fatalf("while it leads to the allowed one: %v", err)
	}
	_ = conn.Close()
	var denied *DeniedError
	if _, err := p.dialBy(t.Context(), resolver, "tcp4", target); !errors.As(err, &denied) {
		t.Errorf("after its address changed: %v", err)
	}
	n.mu.Lock()
	n.lists = [][]netip.Addr{{inner, allowed}}
	n.mu.Unlock()
	if conn, err = p.dialBy(t.Context(), resolver, "tcp4", target); err != nil {
		t.Fatalf("with both: %v", err)
	}
	if at := conn.RemoteAddr().String(); at != "127.0.0.2:"+port {
		t.Errorf("with both it leads to %s", at)
	}
	_ = conn.Close()
	for open() < 2 && came() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the allowed connections did not arrive")
		}
	}
	if came() > 0 {
		t.Errorf("%d connections came to the address that is not allowed", came())
	}
}
