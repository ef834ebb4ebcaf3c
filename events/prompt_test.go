package events

import (
	"strings"
	"testing"
)

// A prompt's variables come from the first source that has them, and inserted text is not
// expanded again.
func TestFill(t *testing.T) {
	d := PromptDefinition{
		Name: "p", Text: "{{a}} {{ b }} {{c}} {{a}} {{other}} {{a.b}} { {a}}", Variables: []string{"a", "b", "c"}, Defaults: raw(`{"a":"no","c":"{{a}}"}`),
	}
	for name, c := range map[string]struct {
		sources []string
		want    string
		err     string
	}{
		"the first that has it":       {[]string{`{"a":"1"}`, `{"a":"2","b":"3"}`}, "1 3 {{a}} 1 {{other}} {{a.b}} { {a}}", ""},
		"other values than texts":     {[]string{`{"a":1.50,"b":{"x":[true]}}`}, `1.50 {"x":[true]} {{a}} 1.50 {{other}} {{a.b}} { {a}}`, ""},
		"null and others say nothing": {[]string{`{"a":null}`, `null`, ``, `[1]`, `"a"`, `{"b":""}`}, "no  {{a}} no {{other}} {{a.b}} { {a}}", ""},
		"nobody has it":               {[]string{`{"a":"1"}`}, "", "the prompt p has no value for b"},
		"too large":                   {[]string{`{"b":"` + strings.Repeat("x", MaxVariableBytes+1) + `"}`}, "", "the value of b"},
	} {
		var sources []JSON
		for _, s := range c.sources {
			sources = append(sources, raw(s))
		}
		got, err := d.Fill(sources...)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := (PromptDefinition{Text: "{{a}}"}).Fill(raw(`{"a":"1"}`)); got != "{{a}}" || err != nil {
		t.Errorf("without variables: %q, %v", got, err)
	}
}
