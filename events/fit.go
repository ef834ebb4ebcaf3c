package events

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Omitted says what part of a conversation a reactor does not receive, because the whole is
// larger than history.maxBytes or the largest request.
type Omitted struct {
	Outputs int   `json:"outputs,omitzero"` // results of calls, and other parts, that a note replaces
	Items   int   `json:"items,omitzero"`   // the oldest items
	Bytes   int64 `json:"bytes"`            // of both
}

// And returns the sum of o and before, an earlier omission; either may be nil.
func (o *Omitted) And(before *Omitted) *Omitted {
	switch {
	case o == nil:
		return before
	case before == nil:
		return o
	}
	return &Omitted{Outputs: o.Outputs + before.Outputs, Items: o.Items + before.Items, Bytes: o.Bytes + before.Bytes}
}

// omitBytes is the smallest size of a value that a note may replace.
const omitBytes = 1 << 10

// FitItems returns items of at most so many bytes of JSON. It replaces results of calls by
// notes, the oldest first, then other large parts; then it drops the oldest items, but never
// the last. If that is not enough it returns the smallest that it can make. The arguments are
// not changed.
func FitItems(items []Item, most int) ([]Item, *Omitted) {
	f := fitting{items: items, sizes: make([]int, len(items)), most: most}
	for i := range items {
		f.sizes[i] = jsonSize(items[i])
		f.total += f.sizes[i] + 1
	}
	if f.total <= most {
		return items, nil
	}
	f.items = append([]Item(nil), items...)
	f.shrink(omitOutput)
	f.shrink(omitPart)
	first := 0
	for f.total > most && first < len(f.items)-1 {
		f.total -= f.sizes[first] + 1
		f.omitted.Items++
		f.omitted.Bytes += int64(f.sizes[first])
		first++
	}
	return f.items[first:], &f.omitted
}

// ItemsBytes returns the size of items in bytes, as FitItems counts it.
func ItemsBytes(items []Item) (n int) {
	for i := range items {
		n += jsonSize(items[i]) + 1
	}
	return n
}

type fitting struct {
	items   []Item
	sizes   []int
	total   int
	most    int
	omitted Omitted
}

// shrink replaces the values that omit finds by notes, the oldest first, until the items fit.
func (f *fitting) shrink(omit func(raw JSON, note func(int) string) (JSON, bool)) {
	for i := range f.items {
		if f.total <= f.most {
			return
		}
		item := &f.items[i]
		if len(item.Content) < omitBytes {
			continue
		}
		note := func(bytes int) string {
			return fmt.Sprintf("left out: %d bytes, because the whole is larger than a message can be; it is in item %s of thread %s: query item.get, part.list with idx, or event.list",
				bytes, item.ID, item.ThreadID)
		}
		var parts []JSON
		if item.Type != Message {
			parts = []JSON{item.Content}
		} else if json.Unmarshal(item.Content, &parts) != nil {
			continue
		}
		before, changed := f.total, 0
		for p, raw := range parts {
			if f.total <= f.most {
				break
			}
			if less, ok := omit(raw, note); ok && len(less) < len(raw) {
				f.total -= len(raw) - len(less)
				parts[p] = less
				changed++
			}
		}
		if changed == 0 {
			continue
		}
		if item.Type != Message {
			item.Content = parts[0]
		} else if raw, err := json.Marshal(parts); err == nil {
			item.Content = raw
		}
		size := jsonSize(*item)
		f.total = before - f.sizes[i] + size // now exact
		f.omitted.Outputs += changed
		f.omitted.Bytes += int64(f.sizes[i] - size)
		f.sizes[i] = size
	}
}

// omitOutput replaces the result of a call, in its part or its item, by a note.
func omitOutput(raw JSON, note func(int) string) (JSON, bool) {
	if len(raw) < omitBytes {
		return nil, false
	}
	var fields map[string]JSON
	if json.Unmarshal(raw, &fields) != nil || len(fields["output"]) < omitBytes {
		return nil, false
	}
	if _, called := fields["callId"]; !called && !strings.HasPrefix(stringOf(fields["type"]), toolPartPrefix) {
		return nil, false
	}
	fields["output"] = quoted(note(len(fields["output"])))
	if len(fields["errorText"]) >= omitBytes { // it repeats the output
		fields["errorText"] = fields["output"]
	}
	return marshalled(fields)
}

// omitPart replaces the large values of a part by notes.
func omitPart(raw JSON, note func(int) string) (JSON, bool) {
	if len(raw) < omitBytes {
		return nil, false
	}
	var fields map[string]JSON
	if json.Unmarshal(raw, &fields) != nil {
		return nil, false
	}
	for name, value := range fields {
		if len(value) < omitBytes {
			continue
		}
		instead := quoted(note(len(value)))
		if name == "input" || name == "arguments" { // they are objects
			instead = JSON(`{"omitted":` + string(quoted(note(len(value)))) + "}")
		}
		fields[name] = instead
	}
	return marshalled(fields)
}

func stringOf(raw JSON) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func marshalled(fields map[string]JSON) (JSON, bool) {
	raw, err := json.Marshal(fields, json.Deterministic(true))
	return raw, err == nil
}

// jsonSize returns the size of an item as JSON, in bytes.
func jsonSize(i Item) int {
	raw, err := json.Marshal(i, json.Deterministic(true))
	if err != nil { // its values came as JSON
		return len(i.Content) + len(i.Metadata)
	}
	return len(raw)
}

// toolPartPrefix is the prefix of the type of a part that is a call of a tool.
const toolPartPrefix = "tool-"

func quoted(s string) JSON {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // invalid UTF-8
		b, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return b
}
