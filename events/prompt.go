package events

import (
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxVariableBytes bounds the value of one variable of a prompt.
const MaxVariableBytes = 16 << 10

// placeholder matches a variable in a prompt's text.
var placeholder = regexp.MustCompile(`\{\{ ?([A-Za-z_][A-Za-z0-9_]*) ?\}\}`)

// Placeholders returns the names of the {{name}} variables of a prompt's text, each once.
func Placeholders(text string) []string {
	var names []string
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// Fill returns the prompt's text with every variable replaced by its value: that of the first
// source that has one, or the variable's default. A source is a JSON object; any other source
// has no values. A string is inserted as it is, null as nothing, and any other value as JSON.
// Inserted text is not expanded again, so a value cannot refer to a variable.
//
// The error names the variable that has no value, or whose value is too large.
func (d PromptDefinition) Fill(sources ...JSON) (string, error) {
	if len(d.Variables) == 0 {
		return d.Text, nil
	}
	objects := make([]map[string]JSON, 0, len(sources)+1)
	for _, raw := range append(slices.Clip(sources), d.Defaults) {
		var object map[string]JSON
		if jsontext.Value(raw).Kind() == '{' && json.Unmarshal(raw, &object) == nil {
			objects = append(objects, object)
		}
	}
	values := map[string]string{}
	for _, name := range d.Variables {
		value, ok := variable(objects, name)
		switch {
		case !ok:
			return "", Errorf(InvalidRequest, "the prompt %s has no value for %s: put it into the content of the context (context.set), "+
				"or into the thread's metadata or env (thread.update), or give the prompt a default", d.Name, name)
		case len(value) > MaxVariableBytes:
			return "", TooLarge("the value of "+name+" for the prompt "+d.Name, int64(len(value)), MaxVariableBytes)
		}
		values[name] = value
	}
	return placeholder.ReplaceAllStringFunc(d.Text, func(at string) string {
		if value, ok := values[placeholder.FindStringSubmatch(at)[1]]; ok {
			return value
		}
		return at
	}), nil
}

// variable returns the first value of a name, as text.
func variable(objects []map[string]JSON, name string) (string, bool) {
	for _, object := range objects {
		if raw, ok := object[name]; ok && jsontext.Value(raw).Kind() != 'n' {
			return TextOf(raw), true
		}
	}
	return "", false
}
