package main

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// An example is on one line if that fits; otherwise what does not fit has a line a member.
func TestIndented(t *testing.T) {
	long, longer := strings.Repeat("x", 70), strings.Repeat("x", 86)
	for name, c := range map[string]struct{ json, want string }{
		"short":  {`{"a":1,"b":[1,"x, y: z"],"c":{}}`, `{"a": 1, "b": [1, "x, y: z"], "c": {}}`},
		"nested": {`{"a":{"b":"` + long + `","c":[1,2]},"d":[]}`, "{\n  \"a\": {\"b\": \"" + long + "\", \"c\": [1, 2]},\n  \"d\": []\n}"},
		"deep": {
			`{"a":{"b":"` + longer + `","c":["` + longer + `",2]}}`,
			"{\n  \"a\": {\n    \"b\": \"" + longer + "\",\n    \"c\": [\n      \"" + longer + "\",\n      2\n    ]\n  }\n}",
		},
	} {
		if got, err := indented(events.JSON(c.json)); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
}
