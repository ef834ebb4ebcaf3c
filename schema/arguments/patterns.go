package arguments

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/internal/pattern"
)

// bound takes the patterns of strings out of the library's hands, which tries
// them whatever they cost, and puts those in their place that ask for their work.
// Those of members' names stay: their work is asked for in advance.
func (w *work) bound(root *jsonschema.Schema) error {
	for _, s := range reached(root) {
		if s.Pattern != nil {
			p, err := pattern.Of(s.Pattern)
			if err != nil {
				return err
			}
			s.Extensions["pattern"] = matching{w, p}
			s.Pattern = nil
		}
		if len(s.PatternProperties) > 0 {
			n, err := sizes(s.PatternProperties)
			if err != nil {
				return err
			}
			s.Extensions["patternProperties"] = naming{w, n}
			w.names = max(w.names, n)
		}
	}
	return nil
}

// sizes returns the size of all patterns of members' names in one schema.
func sizes(all map[*regexp.Regexp]*jsonschema.Schema) (int, error) {
	total := 0
	for expression := range all {
		n, err := pattern.Size(expression.String())
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// spend takes the steps of a pattern, and reports whether there were enough.
func (w *work) spend(steps int) bool {
	w.steps -= steps
	return w.steps >= 0
}

// matching is the pattern of a string.
type matching struct {
	work    *work
	pattern *pattern.Pattern
}

// Validate checks a string against the pattern.
func (m matching) Validate(ctx jsonschema.ValidationContext, value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	found, ok := m.pattern.Match([]byte(text), m.work.spend)
	if !ok {
		panic(tooMuch{})
	}
	if !found {
		return ctx.Error("pattern", "does not match pattern %s", quoted(m.pattern.String()))
	}
	return nil
}

// quoted writes a pattern as the library does.
func quoted(text string) string {
	text = strings.ReplaceAll(fmt.Sprintf("%q", text), `\"`, `"`)
	text = strings.ReplaceAll(text, `'`, `\'`)
	return "'" + text[1:len(text)-1] + "'"
}

// naming charges for the patterns that an object's names were tried on: for each
// time that they were, though Check has made sure that once is not too much.
type naming struct {
	work *work
	size int
}

// Validate takes the cost of the names of an object.
func (n naming) Validate(_ jsonschema.ValidationContext, value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	names := 0
	for name := range object {
		names += len(name)
	}
	if !n.work.spend(n.size * names) {
		panic(tooMuch{})
	}
	return nil
}

// nameBytes counts the bytes of the names in the object that has most of them.
func nameBytes(value any) int {
	most := 0
	switch value := value.(type) {
	case []any:
		for _, below := range value {
			most = max(most, nameBytes(below))
		}
	case map[string]any:
		own := 0
		for name, below := range value {
			own += len(name)
			most = max(most, nameBytes(below))
		}
		most = max(most, own)
	}
	return most
}
