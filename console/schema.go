package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Bounds of the table of a schema. The page also shows the whole definition.
const (
	argumentsDeep = 4
	argumentsMost = 200
)

// argument is an argument of a tool, from its JSON Schema.
type argument struct {
	Name        string // qualified, such as address.street
	Type        string
	Description string
	Required    bool
}

// jsonSchema holds the fields of a JSON Schema that are shown.
type jsonSchema struct {
	Type        any                   `json:"type"`
	Description string                `json:"description"`
	Properties  map[string]jsonSchema `json:"properties"`
	Required    []string              `json:"required"`
	Items       *jsonSchema           `json:"items"`
	Enum        []any                 `json:"enum"`
	Const       any                   `json:"const"`
}

// argumentsOf returns the arguments that a JSON Schema describes, the required ones first.
func argumentsOf(raw events.JSON) []argument {
	var s jsonSchema
	if json.Unmarshal(raw, &s) != nil { // a schema of this form is not shown as a table
		return nil
	}
	list := s.arguments(nil, "", 0)
	return list[:min(len(list), argumentsMost)]
}

func (s jsonSchema) arguments(list []argument, within string, depth int) []argument {
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		return cmp.Or(-compareBool(slices.Contains(s.Required, a), slices.Contains(s.Required, b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		p := s.Properties[name]
		list = append(list, argument{within + name, p.kind(), p.Description, slices.Contains(s.Required, name)})
		if depth >= argumentsDeep || len(list) > argumentsMost {
			continue
		}
		list = p.arguments(list, within+name+".", depth+1)
		if p.Items != nil {
			list = p.Items.arguments(list, within+name+"[].", depth+1)
		}
	}
	return list
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// kind describes the values that a schema permits.
func (s jsonSchema) kind() string {
	switch {
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = jsonText(v)
		}
		return "one of " + strings.Join(values, ", ")
	case s.Const != nil:
		return jsonText(s.Const)
	case s.Items != nil:
		return "list of " + s.Items.kind()
	}
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		var types []string
		for _, one := range t {
			if name, ok := one.(string); ok {
				types = append(types, name)
			}
		}
		return strings.Join(types, " or ")
	}
	return "as the schema says"
}

func jsonText(v any) string {
	raw, _ := json.Marshal(v) // it was decoded
	return string(raw)
}
