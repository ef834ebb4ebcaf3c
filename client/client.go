package client

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/connect"
)

// Options says how a client works. Tenant is required; the zero value of any
// other field means its default.
type Options struct {
	Tenant  string        // whose threads; there is no default tenant
	Creds   string        // file of NATS credentials, or of an NKey; default none
	CA      string        // file of the certificate authorities to trust; default the system's
	Inbox   string        // prefix of inboxes; default what the credentials allow
	Name    string        // of the connection, as the server lists it; default skein-client
	Actor   string        // who asks, for the audit, where a call names nobody; default none
	Timeout time.Duration // for one call with all its repeats, where its context ends later; default 20 s
	Names   events.Names  // of subjects and streams; default prefix skein

	Warn func(message string) // told what is allowed and better avoided; default nobody is
}

// withDefaults gives the options with every default filled in.
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

// Validate says what is wrong with the options: an invalid_request.
func (o Options) Validate() error {
	switch {
	case o.Tenant == "":
		return events.Invalid("/tenant", "a tenant is needed; there is no default one")
	case !events.ValidTenant(o.Tenant):
		return events.Invalid("/tenant", "a tenant is 1 to 64 letters, digits, dashes and underscores")
	case o.Timeout < 0:
		return events.Invalid("/timeout", "the timeout is %v; give a positive duration", o.Timeout)
	}
	if err := o.withDefaults().Names.Validate(); err != nil {
		return events.Invalid("/names", "%w", err)
	}
	return nil
}

// Client speaks for one tenant on one connection. It is safe for concurrent use.
type Client struct {
	nc     *nats.Conn
	denied *denials // of the connection, if it was made here
	opts   Options
	minSeq int64
	owned  bool // the connection was made here
}

// Connect connects to a server and gives a client, which closes the connection
// when it is closed. A connection that is lost later comes back by itself.
func Connect(url string, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	opts, err := connect.Options{Creds: o.Creds, CA: o.CA, Inbox: o.Inbox}.NATS(o.Name)
	if err != nil {
		return nil, events.Errorf(events.Unauthorized, "%w", err)
	}
	denied := newDenials()
	nc, err := nats.Connect(url, append(opts, nats.ErrorHandler(denied.told))...)
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

// New gives a client on a connection, which stays the caller's.
func New(nc *nats.Conn, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Client{nc: nc, denied: newDenials(), opts: o.withDefaults()}, nil
}

// Close closes the connection, if Connect made it.
func (c *Client) Close() {
	if c.owned {
		c.nc.Close()
	}
}

// Tenant gives the tenant that the client speaks for.
func (c *Client) Tenant() string { return c.opts.Tenant }

// UpToDate gives a client whose queries show at least everything that is
// committed now, by whomever.
func (c *Client) UpToDate(ctx context.Context) (*Client, error) {
	end, err := c.HistoryEnd(ctx)
	if err != nil {
		return nil, err
	}
	return c.WithMinSeq(end), nil
}

// WithMinSeq gives a client whose queries wait until their read model shows the
// commit with that sequence, such as the Seq of a reply: so that one reads what
// one wrote. It shares the connection; do not close it.
func (c *Client) WithMinSeq(seq int64) *Client {
	w := *c
	w.minSeq, w.owned = max(seq, c.minSeq), false
	return &w
}
