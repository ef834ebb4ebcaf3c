package arguments

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

func TestCompile_RefusesLargePatterns(t *testing.T) {
	var alternatives strings.Builder // that begin alike would become one
	for i := range 450 {
		fmt.Fprintf(&alternatives, "%c.{999}|", rune(0x100+i))
	}
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d":{"pattern":"^.{1,999}%d$"}`, i, i)
	}
	for name, schema := range map[string]string{
		"one":       `{"properties":{"x":{"pattern":"` + alternatives.String() + `"}}}`,
		"long":      `{"properties":{"x":{"pattern":"` + strings.Repeat("x", 5000) + `"}}}`,
		"together":  `{"properties":{` + strings.Join(many, ",") + `}}`,
		"of names":  `{"patternProperties":{"` + alternatives.String() + `":{}}}`,
		"in a def":  `{"$defs":{"x":{"pattern":"` + alternatives.String() + `"}},"properties":{"x":{"$ref":"#/$defs/x"}}}`,
		"elsewhere": `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"pattern":"` + alternatives.String() + `"}}}`,
	} {
		if _, err := Compile(events.JSON(schema)); err == nil || !strings.Contains(err.Error(), "too large") || len(err.Error()) > 600 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Patterns that are allowed cost no more than a check may, whatever they are tried on.
func TestCheck_BoundsTheWorkOfPatterns(t *testing.T) {
	long := strings.Repeat("x", MaxArguments-100)
	pattern := strings.Repeat(".{900}", 9) + "y"
	for name, c := range map[string]struct{ schema, arguments string }{
		"one":        {`{"properties":{"x":{"pattern":"` + pattern + `"}}}`, `{"x":"` + long + `"}`},
		"many times": {`{"properties":{"x":{"items":{"pattern":"^(.{90})*y"}}}}`, `{"x":["` + strings.Repeat(strings.Repeat("x", 90)+`","`, 10_000) + `"]}`},
		"of a name":  {`{"patternProperties":{"` + pattern + `":{}}}`, `{"` + long + `":1}`},
		"of names":   {`{"properties":{"x":{"items":{"patternProperties":{"` + pattern + `":{}}}}}}`, `{"x":[` + strings.Repeat(`{"`+strings.Repeat("x", 90)+`":1},`, 9_000) + `{}]}`},
	} {
		s, err := Compile(events.JSON(c.schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		start := time.Now()
		if err := s.Check(events.JSON(c.arguments)); err == nil || !strings.Contains(err.Error(), "too much work") {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, time.Since(start))
		if err := s.Check(events.JSON(`{}`)); err != nil {
			t.Errorf("%s, afterwards: %v", name, err)
		}
	}
}

// A few lines of schema may need megabytes as they are compiled, and those count.
func TestChecker_CountsCompiledPatterns(t *testing.T) {
	c := New()
	for i := range 100 {
		schema := fmt.Sprintf(`{"properties":{"x":{"pattern":"^.{900}%d$"},"y":{"pattern":"^.{900}$"},"z":{"pattern":"^.{900}$"}}}`, i)
		if err := c.CheckSchema(events.JSON(schema)); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.known.Len(); n < 20 || n > 80 || c.known.Bytes() > maxCachedBytes {
		t.Errorf("%d schemas of 270 KB each are kept, and %d bytes are counted", n, c.known.Bytes())
	}
}

// A long text may be held to an ordinary pattern, and says what is wrong as ever.
func TestCheck_OrdinaryPatternsOfLongTexts(t *testing.T) {
	s, err := Compile(events.JSON(`{"properties":{"x":{"pattern":"^[A-Za-z0-9+/]+={0,2}$"},"id":{"pattern":"^[a-z]{1,64}\"?'?$"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", MaxArguments-100)
	if err := s.Check(events.JSON(`{"x":"` + long + `=","id":"order"}`)); err != nil {
		t.Error(err)
	}
	const want = `the arguments do not fit: /id: does not match pattern '^[a-z]{1,64}"?\'?$'; /x: does not match pattern '^[A-Za-z0-9+/]+={0,2}$'`
	if err := s.Check(events.JSON(`{"x":"` + long + `-","id":"7"}`)); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// An expression that comes as an argument is not compiled to see that it is one.
func TestCheck_FormatRegexIsBounded(t *testing.T) {
	s, err := Compile(events.JSON(`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"format":"regex"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{"^a+$": true, "(": false, strings.Repeat(`\\pL`, 50_000): false} {
		if err := s.Check(events.JSON(`{"x":"` + text + `"}`)); (err == nil) != ok {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
