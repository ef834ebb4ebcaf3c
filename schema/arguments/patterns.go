package arguments

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/internal/pattern"
)

// limitPatterns replaces string patterns with matchers that charge a work budget; the library's
// own matchers have no bound. Patterns of member names stay with the library: namePatterns charges
// for them.
func (w *work) limitPatterns(root *jsonschema.Schema) error {
	for _, s := range reached(root) {
		if s.Pattern != nil {
			p, err := pattern.Of(s.Pattern)
			if err != nil {
				return err
			}
			s.Extensions["pattern"] = stringPattern{w, p}
			s.Pattern = nil
		}
		if len(s.PatternProperties) > 0 {
			n, err := sizes(s.PatternProperties)
			if err != nil {
				return err
			}
			s.Extensions["patternProperties"] = namePatterns{w, n}
			w.names = max(w.names, n)
		}
	}
	return nil
}

// sizes returns the total size, in instructions, of the patterns of member names in one schema.
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

// charge takes the steps of a pattern from the budget, and reports whether enough were left.
func (w *work) charge(steps int) bool {
	w.steps -= steps
	return w.steps >= 0
}

// stringPattern checks strings against a pattern.
type stringPattern struct {
	work    *work
	pattern *pattern.Pattern
}

// Validate checks a string against the pattern.
func (m stringPattern) Validate(ctx jsonschema.ValidationContext, value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	found, ok := m.pattern.Match([]byte(text), m.work.charge)
	if !ok {
		panic(tooMuch{})
	}
	if !found {
		return ctx.Error("pattern", "does not match pattern %s", quoted(m.pattern.String()))
	}
	return nil
}

// quoted quotes a pattern as the library does in its errors.
func quoted(text string) string {
	text = strings.ReplaceAll(fmt.Sprintf("%q", text), `\"`, `"`)
	text = strings.ReplaceAll(text, `'`, `\'`)
	return "'" + text[1:len(text)-1] + "'"
}

// namePatterns charges for matching an object's member names against patternProperties, each time
// that it is done. Check has made sure that doing it once does not exceed the budget.
type namePatterns struct {
	work *work
	size int
}

// Validate charges for the names of an object.
func (n namePatterns) Validate(_ jsonschema.ValidationContext, value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	names := 0
	for name := range object {
		names += len(name)
	}
	if !n.work.charge(n.size * names) {
		panic(tooMuch{})
	}
	return nil
}

// nameBytes returns the largest number of bytes that the names of one object have, among all
// objects in value.
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
