package change

import (
	"strings"
	"testing"
)

// object1 is a closed object with one property, as callers send it.
const object1 = `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`

// EK-182, EK-183, EK-184: an incompatible change is major, an addition minor,
// other words patch. What is an addition depends on who writes the document.
func TestCompare(t *testing.T) {
	p := func(schema string) string { return `{"properties":{"a":` + schema + `}}` }
	closed := func(members string) string { return `{"additionalProperties":false,` + members + `}` }
	for name, c := range map[string]struct {
		before, after   string
		asked, answered Level
		reason          string // of the first change, without its level
	}{
		// EK-184
		"nothing":                {object1, object1, Same, Same, ""},
		"space and order":        {`{"type":"string","title":"x"}`, `{ "title": "x", "type": "string" }`, Same, Same, ""},
		"description":            {p(`{"description":"x"}`), p(`{"description":"y"}`), Patch, Patch, "/properties/a/description: other words"},
		"title":                  {p(`{}`), p(`{"title":"y"}`), Patch, Patch, "/properties/a/title: other words"},
		"comment":                {`{"$comment":"x"}`, `{}`, Patch, Patch, "/$comment: other words"},
		"words of a constraint":  {`{"allOf":[{"title":"x"}]}`, `{"allOf":[{}]}`, Patch, Patch, "/allOf: other words"},
		"words of a choice":      {`{"oneOf":[{"title":"x"}]}`, `{"oneOf":[{}]}`, Patch, Patch, "/oneOf: other words"},
		"words of no choice":     {`{"not":{"anyOf":[{"title":"x"}]}}`, `{"not":{"anyOf":[{}]}}`, Patch, Patch, "/not: other words"},
		"open in words":          {`{}`, `{"additionalProperties":true}`, Patch, Patch, ""},
		"open without words":     {`{"additionalProperties":true}`, `{}`, Patch, Patch, ""},
		"words at a reference":   {`{"items":{"$ref":"#/$defs/A","title":"x"},"$defs":{"A":{}}}`, `{"items":{"$ref":"#/$defs/A"},"$defs":{"A":{}}}`, Patch, Patch, "/items/title: other words"},
		"order of an enum":       {p(`{"enum":["x","y"]}`), p(`{"enum":["y","x"]}`), Patch, Patch, ": the order of a list, or the name of a definition"},
		"order of required":      {`{"required":["x","y"]}`, `{"required":["y","x"]}`, Patch, Patch, ""},
		"name of a definition":   {`{"items":{"$ref":"#/$defs/A"},"$defs":{"A":{"type":"string"}}}`, `{"items":{"$ref":"#/$defs/B"},"$defs":{"B":{"type":"string"}}}`, Patch, Patch, ""},
		"definition in place":    {`{"items":{"type":"string"}}`, `{"items":{"$ref":"#/$defs/B"},"$defs":{"B":{"type":"string"}}}`, Patch, Patch, ""},
		"what true says":         {p(`true`), p(`{}`), Patch, Patch, ""},
		"property named as word": {`{"properties":{"title":{"type":"string"}}}`, `{"properties":{"title":{"type":"null"}}}`, Major, Major, "/properties/title/type: \"string\" is no more"},

		// EK-183
		"new property, closed":           {object1, strings.Replace(object1, `"a"`, `"b":{},"a"`, 1), Minor, Major, "/properties/b: new"},
		"new property, open":             {p(`{}`), `{"properties":{"a":{},"b":{}}}`, Major, Minor, "/properties/b: new"},
		"first property":                 {`{}`, p(`{}`), Major, Minor, "/properties/a: new"},
		"new property inside":            {p(`{"additionalProperties":true}`), p(`{"additionalProperties":true,"properties":{"b":{}}}`), Major, Minor, "/properties/a/properties/b: new"},
		"new property of a record":       {`{"items":{"$ref":"#/$defs/A"},"$defs":{"A":{}}}`, `{"items":{"$ref":"#/$defs/A"},"$defs":{"A":{"properties":{"b":{}}}}}`, Major, Minor, "/$defs/A/properties/b: new"},
		"new value of an enum":           {p(`{"enum":["x"]}`), p(`{"enum":["x","y"]}`), Minor, Minor, "/properties/a/enum: \"y\" is new"},
		"null in an enum":                {p(`{"enum":["x"]}`), p(`{"enum":["x",null]}`), Minor, Major, "/properties/a/enum: none is new"},
		"no enum":                        {p(`{"type":"string","enum":["x"]}`), p(`{"type":"string"}`), Minor, Major, "/properties/a/enum: no more"},
		"larger maxLength":               {p(`{"maxLength":9}`), p(`{"maxLength":10}`), Minor, Major, "/properties/a/maxLength: was 9, now 10"},
		"no maxItems":                    {p(`{"maxItems":9}`), p(`{}`), Minor, Major, "/properties/a/maxItems: was 9, now none"},
		"smaller minimum":                {p(`{"minimum":0}`), p(`{"minimum":-1}`), Minor, Major, "/properties/a/minimum: was 0, now -1"},
		"no pattern":                     {p(`{"pattern":"^a$"}`), p(`{}`), Minor, Major, "/properties/a/pattern: was \"^a$\", now none"},
		"type or null":                   {p(`{"type":"string"}`), p(`{"type":["string","null"]}`), Minor, Major, "/properties/a/type: \"null\" is new"},
		"any number":                     {p(`{"type":"integer"}`), p(`{"type":"number"}`), Minor, Major, "/properties/a/type: \"number\" is new"},
		"any type":                       {p(`{"type":"integer"}`), p(`{}`), Minor, Major, "/properties/a/type: no more"},
		"any element":                    {`{"items":{"type":"string"}}`, `{}`, Minor, Major, "/items/type: no more"},
		"not required any more":          {`{"required":["a","b"]}`, `{"required":["b"]}`, Minor, Major, "/required: \"a\" is no more"},
		"nothing required any more":      {`{"required":["a"]}`, `{}`, Minor, Major, "/required: \"a\" is no more"},
		"unknown properties":             {closed(`"title":"x"`), `{"additionalProperties":true,"title":"x"}`, Minor, Major, "/additionalProperties: unknown properties are taken"},
		"empty for absent":               {p(`{"type":"string","maxLength":9}`), p(`{"anyOf":[{"type":"string","maxLength":9},{"enum":["",null]}]}`), Minor, Major, ""},
		"another branch":                 {p(`{"anyOf":[{"type":"string"}]}`), p(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), Minor, Major, "/properties/a/anyOf: may be something else too"},
		"another branch of a constraint": {`{"allOf":[{"anyOf":[{"required":["a"]}]}]}`, `{"allOf":[{"anyOf":[{"required":["a"]},{"required":["b"]}]}]}`, Minor, Major, "/allOf/0/anyOf: may be something else too"},
		"tighter constraint":             {`{"allOf":[{"required":["a"]}]}`, `{"allOf":[{"required":["a","b"]}]}`, Major, Major, "/allOf/0/required: \"b\" is new"},
		"wider branch":                   {p(`{"anyOf":[{"maxLength":1}]}`), p(`{"anyOf":[{"maxLength":2}]}`), Minor, Major, "/properties/a/anyOf/0/maxLength: was 1, now 2"},

		// EK-182
		"removed property":         {object1, strings.Replace(object1, `"a":{"type":"string"}`, "", 1), Major, Major, "/properties/a: removed"},
		"renamed property":         {object1, strings.Replace(object1, `"a"`, `"b"`, 1), Major, Major, "/properties/a: removed"},
		"required":                 {`{"required":["a"]}`, `{"required":["a","b"]}`, Major, Major, "/required: \"b\" is new"},
		"required at all":          {`{}`, `{"required":["b"]}`, Major, Major, "/required: \"b\" is new"},
		"new and required":         {`{"properties":{}}`, `{"properties":{"a":{}},"required":["a"]}`, Major, Major, "/properties/a: new"},
		"other type":               {p(`{"type":"string"}`), p(`{"type":"object"}`), Major, Major, "/properties/a/type: \"string\" is no more"},
		"narrower type":            {p(`{"type":["string","null"]}`), p(`{"type":"string"}`), Major, Major, "/properties/a/type: \"null\" is no more"},
		"whole numbers only":       {p(`{"type":"number"}`), p(`{"type":"integer"}`), Major, Major, "/properties/a/type: \"number\" is no more"},
		"a type at all":            {p(`{}`), p(`{"type":"string"}`), Major, Major, "/properties/a/type: was none, now \"string\""},
		"value out of an enum":     {p(`{"enum":["x","y"]}`), p(`{"enum":["x"]}`), Major, Major, "/properties/a/enum: \"y\" is no more"},
		"an enum at all":           {p(`{"type":"string"}`), p(`{"type":"string","enum":["x"]}`), Major, Major, "/properties/a/enum: was none, now [\"x\"]"},
		"smaller maxLength":        {p(`{"maxLength":9}`), p(`{"maxLength":8}`), Major, Major, "/properties/a/maxLength: was 9, now 8"},
		"a maximum at all":         {p(`{}`), p(`{"maximum":8}`), Major, Major, "/properties/a/maximum: was none, now 8"},
		"larger minItems":          {p(`{"minItems":1}`), p(`{"minItems":2}`), Major, Major, "/properties/a/minItems: was 1, now 2"},
		"minus zero at least":      {p(`{"minimum":0}`), p(`{"minimum":-0}`), Major, Major, "/properties/a/minimum: was 0, now -0"},
		"minus zero at most":       {p(`{"maximum":0}`), p(`{"maximum":-0}`), Major, Major, "/properties/a/maximum: was 0, now -0"},
		"a long pattern":           {p(`{"pattern":"` + strings.Repeat("a", 78) + `"}`), p(`{"pattern":"` + strings.Repeat("a", 79) + `"}`), Major, Major, `/properties/a/pattern: was "` + strings.Repeat("a", 78) + `", now another`},
		"no properties":            {`{"properties":{}}`, `{"properties":3}`, Major, Major, "/properties: changed"},
		"properties at last":       {`{"properties":3}`, `{"properties":{}}`, Major, Major, "/properties: changed"},
		"bounds that are broken":   {p(`{"maximum":1.5}`), p(`{"maximum":2.5}`), Major, Major, "/properties/a/maximum: was 1.5, now 2.5"},
		"other pattern":            {p(`{"pattern":"^a$"}`), p(`{"pattern":"^a*$"}`), Major, Major, "/properties/a/pattern: was \"^a$\", now \"^a*$\""},
		"other const":              {p(`{"const":"1.0"}`), p(`{"const":"1.1"}`), Major, Major, "/properties/a/const: changed"},
		"const null":               {p(`{}`), p(`{"const":null}`), Major, Major, "/properties/a: changed"},
		"other id":                 {`{"$id":"urn:a"}`, `{"$id":"urn:b"}`, Major, Major, "/$id: changed"},
		"other dialect":            {`{"$schema":"a"}`, `{"$schema":"b"}`, Major, Major, "/$schema: changed"},
		"closed":                   {`{}`, `{"additionalProperties":false}`, Major, Major, "/additionalProperties: changed"},
		"elements narrowed":        {`{}`, `{"items":{"type":"string"}}`, Major, Major, "/items/type: was none, now \"string\""},
		"constraint":               {`{}`, `{"allOf":[{"required":["a"]}]}`, Major, Major, "/allOf: changed"},
		"constraint changed":       {`{"if":{"title":"x"},"then":{"required":["a"]}}`, `{"if":{},"then":{"required":["b"]}}`, Major, Major, "/if: other words"},
		"one of others":            {`{"oneOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"string"},{}]}`, Major, Major, "/oneOf: changed"},
		"fewer branches":           {`{"anyOf":[{},{"title":"x"}]}`, `{"anyOf":[{}]}`, Major, Major, "/anyOf: changed"},
		"no branches":              {`{"anyOf":[{"type":"string"}]}`, `{"type":"string"}`, Major, Major, "/anyOf: changed"},
		"branch and more":          {`{}`, `{"anyOf":[{}],"maxLength":1}`, Major, Major, "/anyOf: changed"},
		"no branch fits":           {p(`{"type":"string"}`), p(`{"anyOf":[{"type":"string","maxLength":1},{"type":"null"}]}`), Major, Major, "/properties/a/anyOf: changed"},
		"nothing at all":           {p(`{}`), p(`false`), Major, Major, "/properties/a: changed"},
		"unknown keyword":          {`{"multipleOf":2}`, `{"multipleOf":4}`, Major, Major, ": changed"},
		"next to unknown keywords": {`{"unevaluatedProperties":false,"maxLength":1}`, `{"unevaluatedProperties":false,"maxLength":2}`, Major, Major, ": changed"},
		"not JSON":                 {`{}`, `{"a":1,"a":2}`, Major, Major, ": not JSON"},
		"reference in a constraint": {`{"not":{"$ref":"#/$defs/A"},"$defs":{"A":{"maxLength":1}}}`,
			`{"not":{"$ref":"#/$defs/A"},"$defs":{"A":{"maxLength":2}}}`, Major, Major, "/not: changed"},
		"reference to nothing known": {`{"items":{"$ref":"#/properties/a"},"properties":{"a":{"maxLength":1}}}`,
			`{"items":{"$ref":"#/properties/a"},"properties":{"a":{"maxLength":2}}}`, Major, Major, "/items: changed"},
	} {
		for side, want := range map[Side]Level{Asked: c.asked, Answered: c.answered} {
			got, reasons := Compare(side, []byte(c.before), []byte(c.after))
			if got != want || (got == Same) != (len(reasons) == 0) {
				t.Errorf("%s, side %d: %s, not %s: %q", name, side, got, want, reasons)
			} else if c.reason != "" && !strings.HasPrefix(reasons[0], c.reason+" (") {
				t.Errorf("%s, side %d: %q, not %q", name, side, reasons, c.reason)
			}
		}
	}
}

// As deep as a request may be, changes are told apart; deeper ones are major.
func TestCompare_Depth(t *testing.T) {
	deep := func(n int, leaf string) []byte {
		return []byte(strings.Repeat(`{"items":`, n) + leaf + strings.Repeat(`}`, n))
	}
	one, two := `{"maxLength":1}`, `{"maxLength":2}`
	if level, why := Compare(Asked, deep(maxDepth-1, one), deep(maxDepth-1, two)); level != Minor || len(why) != 1 {
		t.Errorf("%s: %q", level, why)
	}
	if level, why := Compare(Asked, deep(maxDepth, one), deep(maxDepth, two)); level != Major || len(why) != 1 || !strings.Contains(why[0], "too deep to compare") {
		t.Errorf("%s: %q", level, why)
	}
}

// A comparison of definitions that contain themselves ends, also if their cycles differ.
func TestCompare_RecursiveDefinitions(t *testing.T) {
	const one = `{"items":{"$ref":"#/$defs/A"},"$defs":{"A":{"properties":{"a":{"$ref":"#/$defs/A"}}}}}`
	if got, why := Compare(Answered, []byte(one), []byte(strings.ReplaceAll(one, "A", "B"))); got != Patch {
		t.Errorf("another name: %s %q", got, why)
	}
	const two = `{"items":{"properties":{"a":{"$ref":"#/$defs/A"}}},"$defs":{"A":{"properties":{"a":{"properties":{"a":{"$ref":"#/$defs/A"}}}}}}}`
	const three = `{"items":{"$ref":"#/$defs/A"},"$defs":{"A":{"properties":{"a":{"properties":{"a":{"$ref":"#/$defs/A"}}}}}}}`
	if got, why := Compare(Answered, []byte(two), []byte(three)); got != Major {
		t.Errorf("out of step, and not refused: %s %q", got, why)
	}
}

// The bare form keeps what a schema means, and differs from another one in words.
func TestBare(t *testing.T) {
	one, _ := Bare([]byte(`{"title":"x","properties":{"title":{"maximum":9007199254740993,"pattern":"<"}}}`))
	if want := `{"$comment":"words 14f825b2bbc32dd8","properties":{"title":{"maximum":9007199254740993,"pattern":"<"}}}`; string(one) != want {
		t.Errorf("%s", one)
	}
	two, _ := Bare([]byte(`{"title":"y","properties":{"title":{"maximum":9007199254740993,"pattern":"<"}}}`))
	if level, _ := Compare(Asked, one, two); level != Patch {
		t.Errorf("other words are %s", level)
	}
	if _, err := Bare([]byte(`{`)); err == nil {
		t.Error("{ is taken")
	}
}
