package natstest

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// Proxy forwards a connection to a server, and drops bytes on request. A connection that
// lost bytes is unusable: cut it.
type Proxy struct {
	listener     net.Listener
	DropSent     atomic.Bool  // drop what the client sends
	DropReceived atomic.Bool  // drop what the server sends
	Lost         atomic.Int64 // bytes that were dropped
	Held         sync.RWMutex // while it is locked, what the server sends waits

	mu     sync.Mutex // guards what follows
	target string
	open   []net.Conn
}

// NewProxy returns a proxy in front of a server, and closes it when the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener}
	p.Lead(t, target)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
	})
	go p.accept()
	return p
}

// URL returns the address of the proxy, for a program that connects through it.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Connect connects through the proxy, and again whenever that is cut.
func (p *Proxy) Connect(t testing.TB) *nats.Conn {
	t.Helper()
	return Dial(t, p.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0))
}

// Lead sends later connections to another server.
func (p *Proxy) Lead(t testing.TB, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = u.Host
}

// Cut closes every connection. The next ones lose nothing.
func (p *Proxy) Cut() {
	p.DropSent.Store(false)
	p.DropReceived.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			p.mu.Unlock()
			_ = client.Close()
			continue
		}
		p.open = append(p.open, client, server)
		p.mu.Unlock()
		go p.carry(server, client, &p.DropSent, &sync.RWMutex{})
		go p.carry(client, server, &p.DropReceived, &p.Held)
	}
}

func (p *Proxy) carry(to, from net.Conn, lose *atomic.Bool, held *sync.RWMutex) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		held.RLock()
		if lose.Load() {
			p.Lost.Add(int64(n))
		} else if n > 0 {
			if _, failed := to.Write(buf[:n]); failed != nil {
				err = failed
			}
		}
		held.RUnlock()
		if err != nil {
			return
		}
	}
}
