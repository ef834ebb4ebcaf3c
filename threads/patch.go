package threads

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Patch is one difference between two values of a thread, an operation of JSON Patch (RFC
// 6902): add, remove or replace.
type Patch struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"` // a JSON pointer
	Value json.RawMessage `json:"value,omitempty"`
}

// clone returns a deep copy.
func clone(t *Thread) *Thread {
	c := new(Thread)
	raw, err := json.Marshal(t)
	if err == nil {
		err = json.Unmarshal(raw, c)
	}
	if err != nil { // it came from JSON
		panic(fmt.Sprintf("threads: copy thread: %v", err))
	}
	return c
}

// Diff returns the patches that turn from into to.
func Diff(from, to *Thread) []Patch {
	return compare([]Patch{}, "", tree(from), tree(to))
}

// tree converts a value to the form of decoded JSON: maps, lists and texts. Numbers keep their
// digits.
func tree(v any) any {
	raw, err := json.Marshal(v)
	if err != nil { // it came from JSON
		panic(fmt.Sprintf("threads: encode: %v", err))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		panic(fmt.Sprintf("threads: decode: %v", err))
	}
	return out
}

func compare(list []Patch, path string, from, to any) []Patch {
	switch a := from.(type) {
	case map[string]any:
		b, ok := to.(map[string]any)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(a)) {
			at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			if value, still := b[name]; still {
				list = compare(list, at, a[name], value)
			} else {
				list = append(list, Patch{Op: "remove", Path: at})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(b)) {
			if _, was := a[name]; !was {
				list = append(list, Patch{"add", path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), encoded(b[name])})
			}
		}
		return list
	case []any:
		b, ok := to.([]any)
		if !ok {
			break
		}
		for i := range min(len(a), len(b)) {
			list = compare(list, path+"/"+strconv.Itoa(i), a[i], b[i])
		}
		for i := len(a) - 1; i >= len(b); i-- {
			list = append(list, Patch{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
		}
		for i := len(a); i < len(b); i++ {
			list = append(list, Patch{"add", path + "/" + strconv.Itoa(i), encoded(b[i])})
		}
		return list
	}
	if !bytes.Equal(encoded(from), encoded(to)) {
		list = append(list, Patch{"replace", path, encoded(to)})
	}
	return list
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // it came from JSON
		panic(fmt.Sprintf("threads: encode: %v", err))
	}
	return raw
}
