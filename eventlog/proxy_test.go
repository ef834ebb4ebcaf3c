package eventlog

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// proxy stands between a connection and its server, and loses what it is told
// to lose. Bytes that were lost leave a connection that is of no use: cut it.
type proxy struct {
	listener net.Listener
	deaf     atomic.Bool  // what the client says is lost
	mute     atomic.Bool  // what the server says is lost
	lost     atomic.Int64 // bytes
	held     sync.RWMutex // locked: what the server says waits, as of one that is held up

	mu     sync.Mutex // guards what follows
	target string
	open   []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener}
	p.lead(t, target)
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
	})
	go p.accept()
	return p
}

// connect connects through the proxy, and again whenever that is cut.
func (p *proxy) connect(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("nats://"+p.listener.Addr().String(),
		nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// lead sends later connections to another server.
func (p *proxy) lead(t *testing.T, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = u.Host
}

// cut ends every connection. What is said on the next ones comes through.
func (p *proxy) cut() {
	p.deaf.Store(false)
	p.mute.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

func (p *proxy) accept() {
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
		go p.carry(server, client, &p.deaf, &sync.RWMutex{})
		go p.carry(client, server, &p.mute, &p.held)
	}
}

func (p *proxy) carry(to, from net.Conn, lose *atomic.Bool, held *sync.RWMutex) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		held.RLock()
		if lose.Load() {
			p.lost.Add(int64(n))
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
