package rest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// description is an OpenAPI document being written.
type description struct{ schemas node }

var schemaRef = regexp.MustCompile(`"#/\$defs/([A-Za-z0-9]+)"`)

// pascal returns a name as generators of clients write types: thread_list becomes ThreadList.
func pascal(name string) string {
	out, upper := make([]rune, 0, len(name)), true
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			upper = true
		case upper:
			out, upper = append(out, unicode.ToUpper(c)), false
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// commandSchema, querySchema and dataSchema name the schemas of a command's data, of a query's, and
// of an event's.
func commandSchema(name string) string { return pascal(name) + "Command" }

func querySchema(name string) string { return pascal(name) + "Query" }

func dataSchema(name string) string { return pascal(name) + "Data" }

// addSchemas adds the JSON Schemas of what is sent and answered. A schema's own definitions
// become schemas of the document; those of what is sent are stricter, and have names of their
// own. Two names that a generator of clients would write alike are an error.
func (d *description) addSchemas() error {
	files, err := schema.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		folder, file, _ := strings.Cut(f.Path, "/")
		name, suffix := strings.TrimSuffix(file, ".json"), "Input"
		switch folder {
		case "commands":
			name = commandSchema(name)
		case "queries":
			name = querySchema(name)
		case "definitions":
			name = pascal(name) + "DefinitionInput"
		case "resources":
			name, suffix = pascal(name), ""
		case "events":
			name, suffix = dataSchema(name), "Data"
		case "event-envelope.json":
			name, suffix = "EventEnvelope", ""
		default:
			continue
		}
		if err := d.addFile(name, suffix, f.Body); err != nil {
			return fmt.Errorf("schema %s: %w", f.Path, err)
		}
	}
	d.addEvents()
	written := map[string]string{}
	for name := range d.schemas {
		plain := strings.ToLower(pascal(name))
		if other, ok := written[plain]; ok {
			return fmt.Errorf("the schemas %s and %s have one name for generators of clients; rename one", name, other)
		}
		written[plain] = name
	}
	return nil
}

// addFile adds a schema and its definitions.
func (d *description) addFile(name, suffix string, body []byte) error {
	body = schemaRef.ReplaceAll(body, []byte(`"#/components/schemas/${1}`+suffix+`"`))
	var one node
	if err := json.Unmarshal(bytes.TrimSpace(body), &one); err != nil {
		return err
	}
	defs, _ := one["$defs"].(node)
	for _, keyword := range []string{"$defs", "$schema", "$id"} {
		delete(one, keyword)
	}
	var wrong []error
	for def, is := range defs {
		wrong = append(wrong, d.add(def+suffix, is.(node)))
	}
	return errors.Join(append(wrong, d.add(name, one))...)
}

// add adds a schema. Another one of that name must say the same; the description of either is kept.
func (d *description) add(name string, is node) error {
	is = withoutBooleans(is).(node)
	was, ok := d.schemas[name].(node)
	if ok && !reflect.DeepEqual(withoutNotes(was), withoutNotes(is)) {
		return fmt.Errorf("there is another schema %s", name)
	}
	if _, described := was["description"]; !described {
		d.schemas[name] = is
	}
	return nil
}

// withoutNotes returns a schema without what only describes it as a whole.
func withoutNotes(is node) node {
	rest := node{}
	for keyword, value := range is {
		if keyword != "description" && keyword != "$comment" {
			rest[keyword] = value
		}
	}
	return rest
}

// withoutBooleans returns a schema with {} in place of true, which generators of clients do not
// read as a schema. additionalProperties, a boolean to all of them, stays.
func withoutBooleans(is any) any {
	switch is := is.(type) {
	case node:
		out := node{}
		for keyword, value := range is {
			switch properties, ok := value.(node); {
			case keyword == "properties" && ok:
				of := node{}
				for name, property := range properties {
					if property == true {
						property = node{}
					}
					of[name] = withoutBooleans(property)
				}
				out[keyword] = of
			case value == true && (keyword == "items" || keyword == "contains" || keyword == "propertyNames"):
				out[keyword] = node{}
			default:
				out[keyword] = withoutBooleans(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(is))
		for i := range is {
			out[i] = withoutBooleans(is[i])
		}
		return out
	}
	return is
}

// addEvents adds a schema for each type of event, the envelope with its data, and Event, which is
// one of them.
func (d *description) addEvents() {
	mapping, list := node{}, []node{}
	for _, row := range events.Catalog() {
		t := string(row.Type)
		name := pascal(t) + "Event"
		d.schemas[name] = node{"description": row.Doc, "allOf": []node{ref("EventEnvelope"), {
			"type": "object", "required": []string{"type", "data"},
			"properties": node{"type": node{"type": "string", "enum": []string{t}}, "data": ref(dataSchema(t))},
		}}}
		mapping[t] = ref(name)["$ref"]
		list = append(list, ref(name))
	}
	d.schemas["Event"] = node{
		"description": "A CloudEvent as it is in the log. Skip a type that you do not know.",
		"oneOf":       list, "discriminator": node{"propertyName": "type", "mapping": mapping},
	}
	if properties := d.properties("EventList"); properties != nil {
		if of, ok := properties["events"].(node); ok {
			of["items"] = ref("Event")
		}
	}
}
