package mcp

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Server defines how to reach an MCP server: by a command or by a URL.
type Server struct {
	// Name is the prefix of its tools' names: 1 to 24 letters, digits, - and single _,
	// not ending in _.
	Name string `json:"name"`

	Command string   `json:"command,omitzero"` // a program, looked up in PATH
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"` // names of the variables it receives besides PATH and HOME

	URL     string            `json:"url,omitzero"`      // http or https
	Headers map[string]string `json:"headers,omitempty"` // a header and the name of the variable with its whole value

	TimeoutMs int64    `json:"timeoutMs,omitzero"` // of one call; default 60,000
	Approval  Approval `json:"approval,omitzero"`  // which of its tools require an approval; default never
}

// Approval selects the tools of a server that require an approval of each call.
type Approval string

// Tools that require an approval, by the hints that the server declares.
const (
	ApproveNever       Approval = "never"
	ApproveDestructive Approval = "destructive" // all except those that only read or only add
	ApproveChanges     Approval = "changes"     // all except those that only read
	ApproveAlways      Approval = "always"
)

// Enum returns the values.
func (Approval) Enum() []string {
	return []string{string(ApproveNever), string(ApproveDestructive), string(ApproveChanges), string(ApproveAlways)}
}

// host returns the host of a server on HTTP, for the operator; the rest of its URL may
// contain a secret.
func (s Server) host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

const defaultTimeout = time.Minute

func (s Server) timeout() time.Duration {
	if s.TimeoutMs == 0 {
		return defaultTimeout
	}
	return time.Duration(s.TimeoutMs) * time.Millisecond
}

// Validate returns what is wrong with a definition, as an invalid_request with the path
// of the field.
func (s Server) Validate() error {
	switch {
	case !isServerName(s.Name):
		return events.Invalid("/name", "the server's name %.80q must be 1 to 24 letters, digits, - and single _, the last not a _", s.Name)
	case (s.Command == "") == (s.URL == ""):
		return events.Invalid("/command", "the server %s needs a command or a url, and not both", s.Name)
	case s.URL != "" && len(s.Args)+len(s.Env) > 0:
		return events.Invalid("/args", "the server %s has a url; args and env are for commands", s.Name)
	case s.Command != "" && len(s.Headers) > 0:
		return events.Invalid("/headers", "the server %s has a command; headers are for urls", s.Name)
	case s.TimeoutMs < 0 || s.TimeoutMs > (24*time.Hour).Milliseconds():
		return events.Invalid("/timeoutMs", "the server %s has a timeout that is not 0 to a day", s.Name)
	case s.Approval != "" && !slices.Contains(s.Approval.Enum(), string(s.Approval)):
		return events.Invalid("/approval", "the server %s: approval must be one of %s", s.Name, strings.Join(s.Approval.Enum(), ", "))
	}
	for i, name := range s.Env {
		if !isVariable(name) {
			return events.Invalid(fmt.Sprintf("/env/%d", i), "the server %s: an entry of env is not the name of a variable; the value stays in the environment", s.Name)
		}
	}
	for _, header := range slices.Sorted(maps.Keys(s.Headers)) {
		if !isHeader(header) {
			return events.Invalid("/headers", "the server %s may not set the header %.80q", s.Name, header)
		}
		if !isVariable(s.Headers[header]) {
			return events.Invalid("/headers", "the server %s: the header %s does not name a variable; the value stays in the environment", s.Name, header)
		}
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return events.Invalid("/url", "the server %s: the url must be one of http or https", s.Name)
		}
		if u.User != nil {
			return events.Invalid("/url", "the server %s: the url holds a secret; use headers", s.Name)
		}
	}
	return nil
}

// isServerName reserves __ as the separator of a server's name and a tool's.
func isServerName(name string) bool {
	return name != "" && len(name) <= 24 && name == plain(name) && !strings.Contains(name, "__") && !strings.HasSuffix(name, "_")
}

func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 128
}

// isHeader excludes headers that the protocol and the connection set.
func isHeader(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '-' && c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	switch http.CanonicalHeaderKey(name) {
	case "", "Accept", "Connection", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	return !strings.HasPrefix(strings.ToLower(name), "mcp-")
}

// secrets returns the values of the variables that a definition names. They are looked
// up for each session, so that changes take effect. The error names one that is not
// set; the others are returned anyway.
func (s Server) secrets(lookup func(string) (string, bool)) (map[string]string, error) {
	values := map[string]string{}
	var err error
	for _, name := range slices.Concat(s.Env, slices.Sorted(maps.Values(s.Headers))) {
		value, ok := lookup(name)
		if !ok {
			err = fmt.Errorf("the variable %s, which its definition names, is not set", name)
			continue
		}
		values[name] = value
	}
	return values, err
}

// masked replaces the values of variables, and the words in them, as the token of
// "Bearer token", by the variables' names, the longest first. Values of a few letters
// are not masked, which would garble the text.
func masked(text string, values map[string]string) string {
	type secret struct{ name, value string }
	var secrets []secret
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range append([]string{values[name]}, strings.Fields(values[name])...) {
			if len(value) >= 6 {
				secrets = append(secrets, secret{name, value})
			}
		}
	}
	slices.SortStableFunc(secrets, func(a, b secret) int { return len(b.value) - len(a.value) })
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s.value, "["+s.name+"]")
	}
	return text
}

// manual reports whether calls of a tool require an approval.
func (s Server) manual(spec runtime.ToolSpec, destructive bool) bool {
	switch s.Approval {
	case ApproveAlways:
		return true
	case ApproveChanges:
		return !spec.ReadOnly
	case ApproveDestructive:
		return !spec.ReadOnly && destructive
	}
	return false
}
