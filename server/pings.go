package server

import (
	"context"
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/connect"
)

const (
	// slowestPings is the longest interval of a server's pings that is not worth a warning. The
	// shipped configurations have 5 s.
	slowestPings = 10 * time.Second

	// firstPing is when a server sends the first ping at the latest, whatever its interval.
	firstPing = 10 * time.Second

	// pingBytes is more than a ping has, also within TLS, and less than anything else that a server
	// sends to an idle connection.
	pingBytes = 64
)

// warnSlowPings logs a warning if a server that Skein does not embed pings its clients so rarely
// that a process which hangs gets requests for minutes. Servers do not tell, so it is measured, on
// an idle connection that exists for that moment only.
func (s *Server) warnSlowPings(ctx context.Context) {
	slow, err := s.pingsSlowly(ctx, slowestPings)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.logger.Info().Err(err).Msg("how often the server pings its clients could not be measured; it must have ping_interval: 5s")
	case slow:
		s.logger.Warn().Str("server", connect.WithoutCredentials(s.url)).Dur("longerThan", slowestPings).
			Msg("the server pings its clients rarely: a Skein that hangs keeps its share of the requests for minutes; set ping_interval: 5s and ping_max: 2 in each nats-server and reload it, see docs/cluster.md")
	default:
		s.logger.Debug().Msg("the server pings its clients every few seconds")
	}
}

// pingsSlowly reports whether a server waits longer than a limit between two pings.
func (s *Server) pingsSlowly(ctx context.Context, limit time.Duration) (bool, error) {
	opts, err := s.cfg.connection().NATS("skein-pings")
	if err != nil {
		return false, err
	}
	dialer := &pingDialer{pings: make(chan struct{}, 1)}
	// Pings of its own would be answered, and look like the server's.
	nc, err := nats.Connect(s.url, append(opts, nats.SetCustomDialer(dialer), nats.NoReconnect(), nats.PingInterval(time.Hour))...)
	if err != nil {
		return false, err
	}
	defer nc.Close()
	for _, wait := range []time.Duration{firstPing, limit} {
		select { // what came with the connection
		case <-dialer.pings:
		default:
		}
		select {
		case <-dialer.pings:
		case <-time.After(wait):
			return !nc.IsClosed(), nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}

// pingDialer tells of reads that are as small as a ping on the connections that it makes.
type pingDialer struct{ pings chan struct{} }

// Dial implements nats.CustomDialer.
func (d *pingDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: firstPing}).Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &pingConn{conn, d.pings}, nil
}

type pingConn struct {
	net.Conn
	pings chan struct{}
}

// Read implements net.Conn.
func (c *pingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && n < pingBytes {
		select {
		case c.pings <- struct{}{}:
		default:
		}
	}
	return n, err
}
