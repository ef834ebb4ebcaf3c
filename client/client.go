package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/events"
)

// Options configures a Client. Tenant is required; the zero value of any other field
// means its default.
type Options struct {
	Tenant  string        // the tenant whose threads are used; required
	Creds   string        // file of NATS credentials, or of an NKey; default none
	CA      string        // file of the certificate authorities to trust; default the system's
	Inbox   string        // prefix of inboxes; default what the credentials permit
	Name    string        // of the connection, in the server's list; default skein-client
	Actor   string        // who acts, for the audit, in calls without As; default none
	Timeout time.Duration // of one call with all its retries, unless its context ends earlier; default 20 s; also of connecting, at most 10 s
	Names   events.Names  // of subjects and streams; default prefix skein
	Guard   Guard         // decides about every message, in addition to the server; default none

	// Service answers commands and queries in this process, while it serves them. Everything else
	// goes over the connection, and commands and queries otherwise; default none.
	Service Service

	// TraceParent is the W3C trace context that commands continue, as their events record it;
	// default none. A client costs little: make one for each trace with New.
	TraceParent string

	Warn func(message string) // called with warnings about valid but discouraged use; default none
}

// withDefaults returns the options with every default filled in.
func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "skein-client"
	}
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	if o.Names.Prefix == "" {
		o.Names = events.DefaultNames()
	}
	return o
}

// Validate reports what is wrong with the options, as an invalid_request.
func (o Options) Validate() error {
	switch {
	case o.Tenant == "":
		return events.Invalid("/tenant", "a tenant is required; there is no default")
	case o.Timeout < 0:
		return events.Invalid("/timeout", "the timeout is %v; use a positive duration", o.Timeout)
	}
	if err := events.CheckTenant("/tenant", o.Tenant); err != nil {
		return err
	}
	if err := o.withDefaults().Names.Validate(); err != nil {
		return events.Invalid("/names", "%w", err)
	}
	return nil
}

// Client acts for one tenant on one connection. It is safe for concurrent use.
type Client struct {
	nc     *nats.Conn
	denied *denials // of the connection, if Connect made it
	copies *copies  // of requests that wait
	opts   Options
	minSeq int64
	writer string         // the token of the thread that the caller holds; see AsWriter
	call   *call          // the work that its commands belong to; see AsCall
	rights *events.Rights // of its commands; see WithRights
	owned  bool           // Connect made the connection
}

// Connect connects to a server and returns a client, whose Close closes the connection.
// A connection that is lost later reconnects by itself.
func Connect(url string, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	opts, err := connect.Options{Creds: o.Creds, CA: o.CA, Inbox: o.Inbox, Within: o.Timeout}.NATS(o.Name)
	if err != nil {
		return nil, events.Errorf(events.Unauthorized, "%w", err)
	}
	denied := newDenials()
	nc, err := nats.Connect(url, append(opts, nats.ErrorHandler(denied.handleError))...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, events.Errorf(events.Unauthorized, "the server %s refuses these credentials: %w", connect.WithoutCredentials(url), err)
	}
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "%w", connect.Failed(url, err))
	}
	c, err := New(nc, o)
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.owned, c.denied = true, denied
	return c, nil
}

// New returns a client on a connection that the caller owns and closes. The error is an
// invalid_request for a connection that is nil, and for options that are not valid.
func New(nc *nats.Conn, o Options) (*Client, error) {
	if nc == nil {
		return nil, events.Invalid("", "the client has no connection: pass one of nats.Connect, or make the client with client.Connect")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Client{nc: nc, denied: newDenials(), copies: &copies{}, opts: o.withDefaults()}, nil
}

// Close closes the connection if Connect made it.
func (c *Client) Close() {
	if c.owned {
		c.nc.Close()
	}
}

// Tenant returns the tenant that the client acts for.
func (c *Client) Tenant() string { return c.opts.Tenant }

// UpToDate returns a client whose queries show at least everything that any client has
// committed by now.
func (c *Client) UpToDate(ctx context.Context) (*Client, error) {
	end, err := c.HistoryEnd(ctx)
	if err != nil {
		return nil, err
	}
	return c.WithMinSeq(end), nil
}

// WithMinSeq returns a client whose queries wait until their read model shows the
// commit with that sequence, such as the Seq of a reply (read your writes). It shares
// the connection; do not close it.
func (c *Client) WithMinSeq(seq int64) *Client {
	w := *c
	w.minSeq, w.owned = max(seq, c.minSeq), false
	return &w
}

// AsCall returns a client whose commands have ids that follow from a key and from what they say,
// so that work that is repeated after a failure, with the same key, writes once what it writes
// again within 24 hours: a repeated command returns its first reply. A command that the client
// sends twice is two commands, and so is one that says something else. Work that is repeated needs
// a new AsCall each time. Contents that are uploaded in pieces, and commands with an id of their
// own, stay as they are. It shares the connection; do not close it.
func AsCall(c *Client, key string) *Client {
	w := *c
	w.call, w.owned = &call{key: key, sent: map[string]int{}}, false
	return &w
}

// WithRights returns a client for server code that works within a run of those rights: the runs
// and effects that it starts have them, too. It shares the connection; do not close it.
func WithRights(c *Client, r *events.Rights) *Client {
	w := *c
	w.owned = false
	if w.rights = r; r != nil {
		code := *r
		code.Code = true
		w.rights = &code
	}
	return &w
}

// call counts the commands of one attempt at some work.
type call struct {
	key  string
	mu   sync.Mutex     // guards sent
	sent map[string]int // how often, by the digest of what it says
}

// commandID returns the id of the next command with that name and data on a thread.
func (k *call) commandID(name, thread string, data []byte) string {
	if data == nil { // as it always was, so that ids of before are the same
		data = []byte("null")
	}
	sum := sha256.New()
	for _, part := range []string{k.key, name, thread, string(data)} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash takes everything
	}
	digest := hex.EncodeToString(sum.Sum(nil)[:16])
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent[digest]++
	return "call-" + digest + "-" + strconv.Itoa(k.sent[digest])
}

// AsWriter returns a client that sends the token of a writer.claim with every command, so that
// the thread which the caller holds accepts them, including those of Files and ThreadState.
// Other threads refuse them. It shares the connection; do not close it.
func AsWriter(c *Client, token string) *Client {
	w := *c
	w.writer, w.owned = token, false
	return &w
}
