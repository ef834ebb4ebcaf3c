package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
)

// Times and sizes of the HTTP server. Answers take as long as they need: each write has
// 30 s, and a body that is no file ReadTimeout.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = edge.BodyTime
	writeTimeout   = 30 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 32 << 10
	maxConnections = 10_000
)

// NewServer returns a server of the handler with all of its times and sizes set.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: knowCaller,
	}
}

// ListenOptions say where HTTP is served, and for whom.
type ListenOptions struct {
	Address   string // host:port
	Cert, Key string // files of a certificate and its key; default no TLS
	Hosts     []string
	Origins   []string
	Proxies   []string          // CIDRs
	Plain     bool              // no TLS is needed on addresses other than loopback
	Tokens    keys.TokenOptions // of an identity provider
	KeyLimits map[string]int
	Limits    map[string]int // of a tenant
	Fair      float64        // see edge.Options
}

// Validate reports what is wrong with the options. Without authentication by keys or tokens only loopback
// addresses are allowed, and elsewhere only TLS, trusted proxies, which have it, or a trusted network.
func (o ListenOptions) Validate(keys bool) error {
	if err := o.Tokens.Validate(); err != nil {
		return err
	}
	authenticated := keys || o.Tokens.Enabled()
	if (o.Cert == "") != (o.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together")
	}
	if _, err := o.proxies(); err != nil {
		return err
	}
	for flag, given := range map[string]map[string]int{"--http-key-limits": o.KeyLimits, "--http-tenant-limits": o.Limits} {
		if _, err := limits(given); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("--http-listen: %q is not a host and a port: %w", o.Address, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() || authenticated && o.confidential() {
		return nil
	}
	return &NotLoopbackError{Address: o.Address}
}

// confidential reports whether nobody reads keys on their way, as far as the options say.
func (o ListenOptions) confidential() bool { return o.Cert != "" || len(o.Proxies) > 0 || o.Plain }

// NotLoopbackError reports that other machines could use an address without keys, or read
// keys on their way to it.
type NotLoopbackError struct{ Address string }

func (e *NotLoopbackError) Error() string {
	return fmt.Sprintf("--http-listen: will not listen on %q, which is not loopback; --access (for keys) and one of --tls-cert, --trust-proxy and --http-plain allow it, and --ops-listen serves health and metrics on any address", e.Address)
}

// Edge sets what the options say in those of an edge. They are valid.
func (o ListenOptions) Edge(e *edge.Options) error {
	var err error
	e.Hosts, e.Origins, e.Fair = o.Hosts, o.Origins, o.Fair
	if e.Proxies, err = o.proxies(); err != nil {
		return err
	}
	if e.Key, err = limits(o.KeyLimits); err != nil {
		return err
	}
	e.Tenant, err = limits(o.Limits)
	return err
}

func (o ListenOptions) proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range o.Proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--trust-proxy: %w; use a CIDR such as 10.0.0.0/8", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// limits returns limits by their names.
func limits(given map[string]int) (edge.Limits, error) {
	var l edge.Limits
	for name, n := range given {
		switch name {
		case "rate":
			l.Rate = n
		case "inflight":
			l.InFlight = n
		case "streams":
			l.Streams = n
		case "uploads":
			l.Uploads = n
		default:
			return l, fmt.Errorf("there is no limit %q; use rate, inflight, streams or uploads", name)
		}
	}
	return l, nil
}

// TLS returns the configuration of TLS, nil without. The files may be replaced while it is in
// use; warn is called when the new ones cannot be used.
func (o ListenOptions) TLS(warn func(error)) (*tls.Config, error) {
	if o.Cert == "" {
		return nil, nil
	}
	files, err := openCertificate(o.Cert, o.Key, warn)
	if err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: files.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// Listen opens the address. The listener bounds how many connections are open.
func (o ListenOptions) Listen() (net.Listener, error) {
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("--http-listen: %w", err)
	}
	return newBounded(l, maxConnections), nil
}
