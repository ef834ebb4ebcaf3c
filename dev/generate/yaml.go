package main

import (
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/events"
)

// object is a YAML mapping whose order is kept.
type object []entry

type entry struct {
	key   string
	value any // object, []any, string, bool, int or JSON
}

// list makes a YAML sequence.
func list[T any](values ...T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// MarshalYAML implements yaml.Marshaler.
func (o object) MarshalYAML() (any, error) {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range o {
		var key, value yaml.Node
		key.SetString(e.key)
		if raw, ok := e.value.(events.JSON); ok { // JSON is YAML
			var doc yaml.Node
			if err := yaml.Unmarshal(raw, &doc); err != nil {
				return nil, err
			}
			value = *doc.Content[0]
		} else if err := value.Encode(e.value); err != nil {
			return nil, err
		}
		mapping.Content = append(mapping.Content, &key, &value)
	}
	return mapping, nil
}
