package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Config configures an endpoint. The zero value of a field means its default.
type Config struct {
	// BaseURL is the prefix of the protocol's path: http or https, without user or query. Default
	// that of the protocol.
	BaseURL string
	// APIKey is sent in the form of the protocol; default none.
	APIKey string
	// Origin says what sets the address and the key, for errors; default the protocol's environment
	// variables.
	Origin string
	// Provider is the endpoint's name in usage; default that of the protocol.
	Provider string
	// Timeout limits one call; default 10 minutes. A call that takes longer is not
	// repeated: what it has generated is paid.
	Timeout time.Duration
	// Idle limits the time without any data, as while a model reasons in silence; default
	// 5 minutes. A call that is silent for longer is not repeated.
	Idle time.Duration
	// Attempts limits how often a step calls the endpoint, after failures that may be
	// temporary; default as often as its agent's retries permit, which bound it, too.
	Attempts int
	// MaxBytes limits the answer, with all its events; default 64 MiB: a generated image comes
	// twice, in base64.
	MaxBytes int64
	// Store permits the endpoint to store the response.
	Store bool
	// RawReasoning sends the text of reasoning back to the model, as open models need
	// it; OpenAI refuses it.
	RawReasoning bool
	// Params are additional params that a model's definition may set, besides those
	// that shape the answer: store, service_tier, tools (any hosted tool),
	// tools.web_search (hosted tools of that type), include (anything). They come from
	// a tenant, and are sent with APIKey.
	Params []string
	// HTTPClient sends the requests; default one that follows no redirects.
	HTTPClient *http.Client
	// Logger receives the details of failed connections, which name addresses: they are
	// for the operator, while tenants read the error of a run.
	Logger zerolog.Logger
}

// WithDefaults returns the configuration of an endpoint of a protocol with its defaults filled in.
func (c Config) WithDefaults(p Protocol) Config {
	c.BaseURL = cmp.Or(c.BaseURL, p.BaseURL)
	c.Provider = cmp.Or(c.Provider, p.Provider)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Minute)
	c.Idle = cmp.Or(c.Idle, 5*time.Minute)
	c.MaxBytes = cmp.Or(c.MaxBytes, 64<<20)
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c
}

// endpoint names the endpoint in what it makes, without telling its address.
func (c Config) endpoint() string {
	sum := sha256.Sum256([]byte(c.BaseURL))
	return c.Provider + "-" + hex.EncodeToString(sum[:4])
}

// settings names what sets the address and the key, for errors.
func (c Config) settings(p Protocol) (address, key string) {
	if c.Origin != "" {
		return "the URL of " + c.Origin, "the variable of its key"
	}
	return "the base URL (" + p.Setting + "_BASE_URL)", p.Setting + "_API_KEY"
}

// Validate returns everything that is wrong. It shows neither the key nor the URL.
func (c Config) Validate(p Protocol) error {
	var found []error
	add := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }
	address, key := c.settings(p)
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		add("%s is not a URL", address)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		add("%s must begin with http:// or https:// and a host", address)
	case u.User != nil:
		add("%s contains a user or password; set the key in %s", address, key)
	case u.RawQuery != "" || u.Fragment != "":
		add("%s must end with its path", address)
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		add("the key (%s) contains a blank, a line break or another invalid character", key)
	}
	if c.Timeout < 0 || c.Idle < 0 {
		add("the timeouts of a call (--model-timeout, --model-idle) must not be negative")
	}
	if c.Attempts < 0 {
		add("the attempts at a step (--model-attempts) must not be negative")
	}
	if c.MaxBytes < 0 {
		add("the limit of an answer must not be negative")
	}
	return errors.Join(append(found, p.Params.check(c.Params))...)
}
