package mcp

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/egress"
)

// Options bound what a Manager may use. The zero value has the defaults.
type Options struct {
	MaxSessions int           // at a time; default 16
	Idle        time.Duration // after which a session that nobody uses ends; default 5 min
	Start       time.Duration // that a server gets to start and greet; default 30 s
	Backoff     time.Duration // after the first failure, doubled with each, up to 30 s; default 500 ms
	MaxAnswer   int           // bytes of one message of a server; default 4 MiB

	// Egress says where a server on HTTP may be; default: nowhere but on public
	// addresses.
	Egress egress.Policy
	// Logger takes what a server on HTTP answered where it is of no use, which its
	// caller is not told; default: nobody does.
	Logger zerolog.Logger
	// Variable looks up a variable; default os.LookupEnv.
	Variable func(name string) (value string, ok bool)
	// Stderr takes what the program of a server writes to stderr, which may hold
	// secrets; default: nobody does.
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
		o.MaxAnswer = 4 << 20
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
