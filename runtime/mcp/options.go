package mcp

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/egress"
)

// Options limit a Manager. The zero value of a field means its default.
type Options struct {
	MaxSessions int           // number of concurrent sessions; default 16
	Idle        time.Duration // after which an unused session ends; default 5 min
	Start       time.Duration // for a server to start and complete the handshake; default 30 s
	Backoff     time.Duration // after the first failure, doubled with each, up to 30 s; default 500 ms
	MaxAnswer   int           // bytes of one message of a server; default 32 MiB

	// Egress restricts the addresses of servers on HTTP; default: public addresses
	// only.
	Egress egress.Policy
	// Logger receives the details of invalid answers of servers on HTTP, which callers
	// are not told; default: none.
	Logger zerolog.Logger
	// Admit admits the start of a session, until done is called; default: every one. If it refuses,
	// the server counts as down.
	Admit func() (done func(), err error)
	// Variable looks up an environment variable; default os.LookupEnv.
	Variable func(name string) (value string, ok bool)
	// Stderr returns the writer for what a server's program writes to stderr, which may
	// contain secrets; default: it is discarded.
	Stderr func(server string) io.Writer
}

const maxBackoff = 30 * time.Second

func (o Options) withDefaults() Options {
	if o.MaxSessions == 0 {
		o.MaxSessions = 16
	}
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	if o.Start == 0 {
		o.Start = 30 * time.Second
	}
	if o.Backoff == 0 {
		o.Backoff = 500 * time.Millisecond
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = 32 << 20
	}
	if o.Admit == nil {
		o.Admit = func() (func(), error) { return func() {}, nil }
	}
	if o.Variable == nil {
		o.Variable = os.LookupEnv
	}
	if o.Stderr == nil {
		o.Stderr = func(string) io.Writer { return nil }
	}
	return o
}

func (o Options) validate() error {
	if o.MaxSessions < 0 || o.Idle < 0 || o.Start < 0 || o.Backoff < 0 || o.MaxAnswer < 0 {
		return events.Invalid("", "a limit for MCP servers is below 0")
	}
	return nil
}
