package openai

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

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
		return "", text(p.Error)
	}
	if code = text(p.Code); code == "" {
		code = text(p.Type)
	}
	return code, text(p.Message)
}

// text returns a JSON string's text; "" for anything else.
func text(v events.JSON) string {
	var s string
	if jsontext.Value(v).Kind() != '"' || json.Unmarshal(v, &s, jsontext.AllowInvalidUTF8(true)) != nil {
		return ""
	}
	return s
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

// eventFailure decodes the error of an event or a response.
func eventFailure(raw []byte) *failure {
	code, message := readProblem(raw)
	if code == "error" { // the type of the event
		code = ""
	}
	f := &failure{text: "the model failed", long: code == tooLong, code: failureCode(code)}
	switch code {
	case "", "server_error", "internal_error", "internal_server_error", "api_error", "overloaded_error", "service_unavailable",
		"rate_limit_exceeded", "rate_limit_error", "timeout", "vector_store_timeout":
		f.retry = true
	}
	if code != "" {
		f.text += " (" + code + ")"
	}
	if message != "" {
		f.text += ": " + message
	}
	return f
}
