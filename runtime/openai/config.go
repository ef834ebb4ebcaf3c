package openai

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Config says which endpoint is asked, and how. The zero value of a field means
// its default.
type Config struct {
	// BaseURL is where /responses is: http or https, without user or query.
	// Default https://api.openai.com/v1. By custom SKEIN_OPENAI_BASE_URL, else
	// OPENAI_BASE_URL.
	BaseURL string
	// APIKey is sent as a bearer token; without one, nothing is. By custom
	// SKEIN_OPENAI_API_KEY, else OPENAI_API_KEY.
	APIKey string
	// Provider is how usage names the endpoint; default openai.
	Provider string
	// Timeout bounds one call; default 10 minutes.
	Timeout time.Duration
	// Idle bounds the time in which nothing at all comes; default 2 minutes.
	Idle time.Duration
	// MaxBytes bounds the answer, with all its events; default 16 MiB.
	MaxBytes int64
	// Store lets the endpoint keep the response.
	Store bool
	// RawReasoning sends the text of reasoning back to the model, as open models
	// want it; OpenAI refuses it.
	RawReasoning bool
	// Params are what the params of a model may set besides how it answers: store,
	// service_tier, tools (any hosted tool), tools.web_search (hosted tools of that
	// type), include (anything). They are a tenant's, and go out with APIKey.
	Params []string
	// HTTPClient makes the requests; default one that follows no redirects.
	HTTPClient *http.Client
	// Logger takes why a connection could not be made or broke, which names addresses:
	// it is for the operator, and the error of a run is read by tenants.
	Logger zerolog.Logger
}

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// FromEnv gives the configuration that the environment names: see the fields.
// Getenv is os.Getenv, or what stands for it.
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

// WithDefaults gives the configuration with its defaults filled in.
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
		c.Idle = 2 * time.Minute
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 16 << 20
	}
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c
}

// Validate names all that is wrong. It shows neither the key nor the URL.
func (c Config) Validate() error {
	var found []error
	add := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		add("the base URL (SKEIN_OPENAI_BASE_URL) is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		add("the base URL (SKEIN_OPENAI_BASE_URL) begins with http:// or https:// and a host")
	case u.User != nil:
		add("the base URL (SKEIN_OPENAI_BASE_URL) holds a user or password; give the key in SKEIN_OPENAI_API_KEY")
	case u.RawQuery != "" || u.Fragment != "":
		add("the base URL (SKEIN_OPENAI_BASE_URL) ends with its path")
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		add("the key (SKEIN_OPENAI_API_KEY) holds a blank, a line break or a letter that no key has")
	}
	if c.Timeout < 0 || c.Idle < 0 {
		add("timeouts are not negative")
	}
	if c.MaxBytes < 0 {
		add("the bound of an answer is not negative")
	}
	return errors.Join(append(found, checkAllowed(c.Params))...)
}
