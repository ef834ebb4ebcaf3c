package arguments

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const (
	maxProblems = 5   // in one error
	maxReason   = 300 // in bytes, of one problem
)

// Error says that the arguments of a call do not satisfy the schema of its tool.
type Error struct {
	Problems []Problem // at least one, sorted
	More     int       // the number of further problems that are left out
}

// Problem is one thing that is wrong with the arguments of a call.
type Problem struct {
	Path   string // a JSON pointer; empty: the arguments as a whole
	Reason string
}

// Error names each path and what is wrong there, in one line.
func (e *Error) Error() string {
	said := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		said = append(said, p.String())
	}
	if e.More > 0 {
		said = append(said, fmt.Sprintf("and %d more", e.More))
	}
	return "the arguments do not fit: " + strings.Join(said, "; ")
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Reason
	}
	return p.Path + ": " + p.Reason
}

// argumentsError returns an Error with one problem, of the arguments as a whole.
func argumentsError(format string, args ...any) *Error {
	return &Error{Problems: []Problem{{Reason: fmt.Sprintf(format, args...)}}}
}

// reasons converts an error of the schema library into an Error with the problems sorted. The
// library visits members in the random order of a Go map.
func reasons(err error) error {
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return argumentsError("they cannot be checked: the schema is one that the checker does not understand")
	}
	found := problems(invalid)
	most := min(len(found), maxProblems)
	return &Error{Problems: found[:most], More: len(found) - most}
}

// problems returns the distinct problems below an error, sorted.
func problems(e *jsonschema.ValidationError) []Problem {
	var out []Problem
	switch keyword := e.KeywordLocation[strings.LastIndexByte(e.KeywordLocation, '/')+1:]; {
	case (keyword == "anyOf" || keyword == "oneOf") && len(e.Causes) > 0:
		out = append(out, Problem{pointer(e), oneLine("fits none of the alternatives: " + alternatives(e))})
	case len(e.Causes) == 0 || keyword == "minContains":
		out = append(out, Problem{pointer(e), oneLine(stableReason(keyword, e.Message))})
	default:
		for _, cause := range e.Causes {
			out = append(out, problems(cause)...)
		}
	}
	slices.SortFunc(out, func(a, b Problem) int {
		if a.Path != b.Path {
			return strings.Compare(a.Path, b.Path)
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	return slices.Compact(out)
}

// alternatives says for each alternative why the value does not fit it.
func alternatives(e *jsonschema.ValidationError) string {
	here := pointer(e)
	var each []string
	for _, cause := range e.Causes {
		first := problems(cause)[0]
		first.Path = strings.TrimPrefix(first.Path, here)
		if text := first.String(); !slices.Contains(each, text) {
			each = append(each, text)
		}
	}
	return strings.Join(each, ", or ")
}

// pointer returns the JSON pointer of an error in the arguments. The library escapes the pointer's
// tokens as in a URL.
func pointer(e *jsonschema.ValidationError) string {
	if plain, err := url.PathUnescape(e.InstanceLocation); err == nil {
		return oneLine(plain)
	}
	return oneLine(e.InstanceLocation)
}

// stableReason sorts the member names in a message of the library, which lists them in the random
// order of a Go map.
func stableReason(keyword, message string) string {
	switch keyword {
	case "additionalProperties":
		const before, after, sep = "additionalProperties '", "' not allowed", "', '"
		if inner, ok := strings.CutPrefix(message, before); ok {
			if inner, ok = strings.CutSuffix(inner, after); ok {
				names := strings.Split(inner, sep)
				slices.Sort(names)
				return "does not know '" + strings.Join(names, sep) + "'"
			}
		}
	case "required":
		if names, ok := strings.CutPrefix(message, "missing properties: "); ok {
			return "lacks " + names
		}
	case "minContains":
		return "too few of its items are what the schema asks for"
	}
	return message
}

// oneLine returns a text without line breaks, cut to maxReason bytes.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}
