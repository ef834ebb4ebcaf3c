package model

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
)

// Failure is what an endpoint reports as its failure. Its text is foreign: errors have an excerpt
// without secrets.
type Failure struct {
	Text     string
	Code     events.FailureCode // the reason; empty: none of them
	Retry    bool               // another call may succeed
	After    time.Duration      // how long to wait before
	TooLong  bool               // the conversation is too long for the model
	BrokeOff bool               // the answer is none, or ended too early; what was streamed of it is kept
}

func (f *Failure) Error() string { return f.Text }

// Unreadable returns the failure of an answer that is not what the protocol says. It is paid, and
// nothing says that the next one would be another.
func Unreadable(what string) *Failure {
	return &Failure{Text: "the model's answer cannot be read: " + what, BrokeOff: true}
}

// Failure returns the failure that an event of the stream reports; raw is the event's error.
func (p Protocol) Failure(raw events.JSON) *Failure {
	code, message := readProblem(raw)
	if code == "error" { // the type of the event
		code = ""
	}
	f := &Failure{Text: "the model failed", TooLong: p.tooLong(raw), Code: failureCode(code)}
	if status, err := strconv.Atoi(code); err == nil { // of routers, which pass on that of another endpoint
		f.Code, f.Retry = statusCode(status), retryStatus(status)
	}
	switch code {
	case "", "server_error", "internal_error", "internal_server_error", "api_error", "overloaded_error", "service_unavailable",
		"rate_limit_exceeded", "rate_limit_error", "timeout", "vector_store_timeout":
		f.Retry = true
	}
	if code != "" {
		f.Text += " (" + code + ")"
	}
	if message != "" {
		f.Text += ": " + message
	}
	return f
}

func (p Protocol) tooLong(problem []byte) bool {
	return p.TooLong != "" && bytes.Contains(problem, []byte(p.TooLong))
}

// tooLongError reports that a conversation is too long for its model.
type tooLongError struct{ error }

// excerptBytes is how much of an answer with another status is read.
const excerptBytes = 8 << 10

// status reads an answer whose status is not 200.
func (c *call) status(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, excerptBytes)) // what was read is enough
	text := "the model's endpoint answered " + strconv.Itoa(res.StatusCode)
	if name := http.StatusText(res.StatusCode); name != "" {
		text += " " + name
	}
	if said := problemText(body); said != "" {
		text += ": " + said
	}
	code, _ := readProblem(body)
	f := &Failure{
		Text:    text,
		Code:    cmp.Or(failureCode(code), statusCode(res.StatusCode)),
		Retry:   retryStatus(res.StatusCode),
		After:   retry.After(res.Header, time.Now()),
		TooLong: res.StatusCode == http.StatusRequestEntityTooLarge || c.protocol.tooLong(body),
	}
	if f.Code == events.FailedQuota { // no pause brings it back
		f.Retry = false
	}
	return f
}

// retryStatus reports whether another call may succeed after a status.
func retryStatus(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// statusCode returns why an endpoint refuses with a status, empty if that does not say.
func statusCode(status int) events.FailureCode {
	switch status {
	case http.StatusTooManyRequests:
		return events.FailedRateLimit
	case http.StatusPaymentRequired:
		return events.FailedQuota
	case http.StatusUnauthorized, http.StatusForbidden:
		return events.FailedKey
	}
	return ""
}

// told returns the error for an endpoint's failure.
func (c *call) told(err error) error {
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Text: err.Error()}
	}
	out := errors.New(c.clean(f.Text))
	if f.TooLong {
		return &tooLongError{out}
	}
	if f.Code != "" {
		out = &runtime.FailureError{Code: f.Code, Err: out}
	}
	if f.Retry {
		out = &runtime.RetryError{After: f.After, Err: out}
	}
	if f.BrokeOff {
		out = &runtime.BrokenOffError{Err: out}
	}
	return out
}

// Patterns of secrets in a text.
var (
	keyLike    = regexp.MustCompile(`\b(sk|pk|rk|sess|key|gsk|xai|hf|AIza)[-_][A-Za-z0-9*._-]{4,}`)
	bearerLike = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=*._~-]{4,}`)
	namedLike  = regexp.MustCompile(`(?i)\b(api[-_]?key|access[-_]?token|token|secret|password|authorization)(["']?\s*[:=]\s*["']?)[^\s"',&}]+`)
	userInfo   = regexp.MustCompile(`://[^\s/@]*@`)
)

// excerptLetters limits how much foreign text an error contains.
const excerptLetters = 300

// clean returns a foreign text for an error: in one line, short, and without secrets.
func (c *call) clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if key := c.config.APIKey; len(key) >= 4 {
		s = strings.ReplaceAll(s, key, "***")
	}
	s = userInfo.ReplaceAllString(s, "://***@")
	s = bearerLike.ReplaceAllString(s, "$1 ***")
	s = namedLike.ReplaceAllString(s, "$1$2***")
	s = keyLike.ReplaceAllString(s, "$1-***")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if utf8.RuneCountInString(s) > excerptLetters {
		s = string([]rune(s)[:excerptLetters]) + "..."
	}
	return s
}

// problem is an error in an endpoint's body.
type problem struct {
	Code    events.JSON `json:"code"`
	Type    events.JSON `json:"type"`
	Message events.JSON `json:"message"`
	Error   events.JSON `json:"error"`
}

// problemText returns the error in a body, or the body itself.
func problemText(body []byte) string {
	code, message := readProblem(body)
	switch {
	case message == "" && code == "":
		return string(body)
	case message == "":
		return code
	}
	return message
}

// readProblem returns the code and message of an error: at the top, or in "error",
// which may also be a string.
func readProblem(body []byte) (code, message string) {
	var p problem
	if json.Unmarshal(body, &p, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return "", ""
	}
	switch jsontext.Value(p.Error).Kind() {
	case '{':
		return readProblem(p.Error)
	case '"':
		return "", Text(p.Error)
	}
	if code = Text(p.Code); code == "" {
		code = Text(p.Type)
	}
	if code == "" && jsontext.Value(p.Code).Kind() == '0' {
		code = string(p.Code)
	}
	return code, Text(p.Message)
}

// failureCode returns why an endpoint fails, for the code in its error; empty if that is no such
// reason.
func failureCode(code string) events.FailureCode {
	switch code {
	case "rate_limit_exceeded", "rate_limit_error", "rate_limit_reached", "slow_down":
		return events.FailedRateLimit
	case "insufficient_quota", "quota_exceeded", "billing_hard_limit_reached", "billing_error":
		return events.FailedQuota
	case "content_policy_violation", "content_filter", "image_content_policy_violation", "cyber_policy":
		return events.FailedPolicy
	case "invalid_api_key", "authentication_error", "permission_error", "permission_denied":
		return events.FailedKey
	}
	return ""
}
