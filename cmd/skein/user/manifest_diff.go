package user

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// manifestChange is a member of a definition that differs. What is not there is nil.
type manifestChange struct {
	Path string      `json:"path"` // a JSON pointer
	From events.JSON `json:"from,omitzero"`
	To   events.JSON `json:"to,omitzero"`
}

// diffManifest lists what differs between two JSON values, member by member, in order.
// Lists are compared place by place.
func diffManifest(from, to events.JSON) []manifestChange {
	var list []manifestChange
	diff("", from, to, &list)
	return list
}

func diff(at jsontext.Pointer, from, to events.JSON, list *[]manifestChange) {
	a, b := members(from), members(to)
	if a == nil || b == nil || jsontext.Value(from).Kind() != jsontext.Value(to).Kind() {
		if string(from) != string(to) {
			*list = append(*list, manifestChange{string(at), from, to})
		}
		return
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	order := slices.SortedFunc(maps.Keys(names), func(x, y string) int {
		if jsontext.Value(from).Kind() == '[' && len(x) != len(y) { // places: 9 before 10
			return len(x) - len(y)
		}
		return strings.Compare(x, y)
	})
	for _, name := range order {
		diff(at.AppendToken(name), a[name], b[name], list)
	}
}

// members returns the members of an object or a list, by name or index; nil if the value is
// neither.
func members(v events.JSON) map[string]events.JSON {
	switch jsontext.Value(v).Kind() {
	case '{':
		out := map[string]events.JSON{}
		if json.Unmarshal(v, &out) == nil {
			return out
		}
	case '[':
		var items []events.JSON
		if json.Unmarshal(v, &items) == nil {
			out := map[string]events.JSON{}
			for i, item := range items {
				out[strconv.Itoa(i)] = item
			}
			return out
		}
	}
	return nil
}
