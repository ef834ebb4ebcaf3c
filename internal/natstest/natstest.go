// Package natstest starts a nats-server with JetStream for a test, on a free port and a
// temporary directory, and removes it when the test ends.
//
// The server is the one that `skein serve` embeds. It does not fsync unless
// asked to, because tests end before the power fails; a test about durability
// or speed asks for SyncAlways. If the test fails, its output has the server's
// warnings and errors.
package natstest

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/loopback"
)

// Option changes how Start runs the server.
type Option func(*embedded.Options)

// SyncAlways makes every acknowledgement wait for fsync, as in production.
func SyncAlways() Option {
	return func(o *embedded.Options) { o.SyncAlways = true }
}

// StoreDir keeps the store in dir, for a test that stops a server and starts
// another one on what it left.
func StoreDir(dir string) Option {
	return func(o *embedded.Options) { o.StoreDir = dir }
}

// MaxPayload bounds the messages that the server accepts.
func MaxPayload(bytes int32) Option {
	return func(o *embedded.Options) { o.MaxPayload = bytes }
}

// Listen has the server listen on an address, for a test that starts another one
// there: one of [FreeAddress].
func Listen(address string) Option {
	return func(o *embedded.Options) { o.Listen = address }
}

// FreeAddress returns an address for a server that is stopped, that is started again, or that is
// never there: until the test ends no outgoing connection and no other test takes its port, as may
// happen to a port that the system chose.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, held, err := loopback.Reserve()
	if err != nil {
		t.Fatalf("natstest: %v", err)
	}
	t.Cleanup(func() { _ = held.Close() })
	return address
}

// Start runs a server until the test and its cleanups registered later end. It
// fails the test if the server does not start.
func Start(t testing.TB, opts ...Option) *embedded.Server {
	t.Helper()
	o := embedded.NewOptions("")
	o.Listen = FreeAddress(t) // so that the clients of a stopped server do not find another test's
	o.SyncAlways = false
	for _, apply := range opts {
		apply(&o)
	}
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	var log record
	t.Cleanup(func() { log.show(t) }) // after the end of the server
	o.Logger = zerolog.New(&log).Level(zerolog.WarnLevel).With().Timestamp().Logger()
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatalf("natstest: %v", err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

// Connect connects over TCP and closes the connection when the test ends. It
// fails the test if it cannot connect.
func Connect(t testing.TB, s *embedded.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	return Dial(t, s.URL(), opts...)
}

// Dial connects to a URL, which may be that of another process, and closes the connection when
// the test ends. It fails the test if the server does not let it in.
func Dial(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	opts = append([]nats.Option{nats.Name(t.Name()), nats.Timeout(dialWithin)}, opts...)
	nc, err := nats.Connect(url, opts...)
	for tries := 1; tries < 3 && err != nil && strings.Contains(err.Error(), "expected 'PONG'"); tries++ {
		nc, err = nats.Connect(url, opts...) // a slow server has pinged first, which nats.go takes for a refusal
	}
	if err != nil {
		t.Fatalf("natstest: connect to %s: %v", url, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// dialWithin is how long a server may take to let a test in, on a machine that runs other tests.
const dialWithin = time.Minute
