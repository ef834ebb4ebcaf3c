package api

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/skein-threads/skein/api/edge"
)

// bounded is a listener with a bound on its open connections. Beyond it a new one takes the place of a
// stranger: a connection of which no request was authenticated. The oldest stranger of the address
// with the most of them goes. If there is none, the new one is closed.
type bounded struct {
	net.Listener
	most int

	mu        sync.Mutex // guards what follows
	open      int
	strangers map[string]*list.List // of *counted, by address, the oldest first; none is empty
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, most: most, strangers: map[string]*list.List{}}
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		added, replaced := b.add(conn)
		if replaced != nil {
			_ = replaced.Close() // a stranger's
		}
		if added != nil {
			return added, nil
		}
		_ = conn.Close() // it was never used
	}
}

// add counts a connection, and returns the one that it replaces, if any; none is added if there is no
// room.
func (b *bounded) add(conn net.Conn) (added, replaced *counted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.most {
		if replaced = b.oldestStranger(); replaced == nil {
			return nil, nil
		}
		b.remove(replaced)
	}
	added = &counted{Conn: conn, of: b, address: conn.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(added.address); err == nil {
		added.address = host
	}
	if b.strangers[added.address] == nil {
		b.strangers[added.address] = list.New()
	}
	added.stranger = b.strangers[added.address].PushBack(added)
	b.open++
	return added, replaced
}

// oldestStranger returns the oldest stranger of the address with the most. Hold b.mu.
func (b *bounded) oldestStranger() *counted {
	var most *list.List
	for _, of := range b.strangers {
		if most == nil || of.Len() > most.Len() {
			most = of
		}
	}
	if most == nil {
		return nil
	}
	return most.Front().Value.(*counted)
}

// remove counts a connection no longer. Hold b.mu.
func (b *bounded) remove(c *counted) {
	if !c.removed {
		c.removed = true
		b.open--
		b.forget(c)
	}
}

// forget takes a connection out of the strangers. Hold b.mu.
func (b *bounded) forget(c *counted) {
	if c.stranger == nil {
		return
	}
	of := b.strangers[c.address]
	of.Remove(c.stranger)
	c.stranger = nil
	if of.Len() == 0 {
		delete(b.strangers, c.address)
	}
}

// counted is a connection that its listener counts.
type counted struct {
	net.Conn
	of      *bounded
	address string

	stranger *list.Element // nil: a request was authenticated; guarded by of.mu
	removed  bool          // guarded by of.mu
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// known notes that a request of the connection was authenticated.
func (c *counted) known() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.forget(c)
}

// knowCaller returns the context of a connection's requests, which tells its listener that one of them
// was authenticated.
func knowCaller(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if c, ok := conn.(*counted); ok {
		return edge.WithKnown(ctx, sync.OnceFunc(c.known))
	}
	return ctx
}
