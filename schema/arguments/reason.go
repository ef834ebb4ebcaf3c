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
	maxProblems = 5   // that a model is told at once
	maxReason   = 300 // bytes of one of them
)

// Error says that the arguments of a call are not what its tool takes.
type Error struct {
	Problems []Problem // at least one, sorted
	More     int       // those left out
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

// wrong says one thing of the arguments as a whole.
func wrong(format string, args ...any) *Error {
	return &Error{Problems: []Problem{{Reason: fmt.Sprintf(format, args...)}}}
}

// reasons returns what the schema library found as problems in a fixed order: the library
// visits members in the order of a Go map.
func reasons(err error) error {
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return wrong("they cannot be checked: the schema is one that the checker does not understand")
	}
	found := problems(invalid)
	most := min(len(found), maxProblems)
	return &Error{Problems: found[:most], More: len(found) - most}
}

// problems returns what is wrong below an error, sorted, each once.
func problems(e *jsonschema.ValidationError) []Problem {
	var out []Problem
	switch keyword := e.KeywordLocation[strings.LastIndexByte(e.KeywordLocation, '/')+1:]; {
	case (keyword == "anyOf" || keyword == "oneOf") && len(e.Causes) > 0:
		out = append(out, Problem{pointer(e), line("fits none of the alternatives: " + alternatives(e))})
	case len(e.Causes) == 0 || keyword == "minContains":
		out = append(out, Problem{pointer(e), line(words(keyword, e.Message))})
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

// alternatives says of each alternative why it does not fit.
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

// pointer returns where in the arguments an error lies. The library escapes a
// pointer's tokens as in a URL.
func pointer(e *jsonschema.ValidationError) string {
	if plain, err := url.PathUnescape(e.InstanceLocation); err == nil {
		return line(plain)
	}
	return line(e.InstanceLocation)
}

// words says a reason so that it stays the same: the library lists members in
// the order of a Go map.
func words(keyword, message string) string {
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

// line returns a text in one line and not too long.
func line(text string) string {
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
