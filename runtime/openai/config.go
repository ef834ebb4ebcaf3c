package openai

import (
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

// Config configures the endpoint. The zero value of a field means its default.
type Config struct {
	// BaseURL is the prefix of /responses: http or https, without user or query.
	// Default https://api.openai.com/v1. FromEnv takes it from SKEIN_OPENAI_BASE_URL,
	// else OPENAI_BASE_URL.
	BaseURL string
	// APIKey is sent as a bearer token; default none. FromEnv takes it from
	// SKEIN_OPENAI_API_KEY, else OPENAI_API_KEY.
	APIKey string
	// Provider is the endpoint's name in usage; default openai.
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

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// FromEnv returns the configuration in the environment: see the fields. getenv is
// usually os.Getenv.
func FromEnv(getenv func(string) string) Config {
	first := func(names ...string) string {
		for _, name := range names {
			if v := getenv(name); v != "" {
				return v
			}
		}
		return ""
	}
	return Config{
		BaseURL: first("SKEIN_OPENAI_BASE_URL", "OPENAI_BASE_URL"),
		APIKey:  first("SKEIN_OPENAI_API_KEY", "OPENAI_API_KEY"),
	}
}

// WithDefaults returns the configuration with its defaults filled in.
func (c Config) WithDefaults() Config {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if c.Provider == "" {
		c.Provider = "openai"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.Idle == 0 {
		c.Idle = 5 * time.Minute
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 64 << 20
	}
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

// Validate returns everything that is wrong. It shows neither the key nor the URL.
func (c Config) Validate() error {
	var found []error
	add := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		add("the base URL (SKEIN_OPENAI_BASE_URL) is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		add("the base URL (SKEIN_OPENAI_BASE_URL) must begin with http:// or https:// and a host")
	case u.User != nil:
		add("the base URL (SKEIN_OPENAI_BASE_URL) contains a user or password; set the key in SKEIN_OPENAI_API_KEY")
	case u.RawQuery != "" || u.Fragment != "":
		add("the base URL (SKEIN_OPENAI_BASE_URL) must end with its path")
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		add("the key (SKEIN_OPENAI_API_KEY) contains a blank, a line break or another invalid character")
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
	return errors.Join(append(found, checkAllowed(c.Params))...)
}
