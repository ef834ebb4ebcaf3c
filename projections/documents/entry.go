package documents

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Entry is an item in the index. Versions are the thread's.
//
// A page is written anew for each item, so an entry is a list and not an object:
// [index, id, context, type, made, hidden], which is half the size and a tenth
// of the work. One that is silent, nested, or has to do with calls has three
// fields more: flags, depth and calls.
type Entry struct {
	Index   int64
	ID      string
	Context int // its place in the page's list of contexts
	Type    events.ItemType
	Made    int64
	Hidden  int64 // 0: it is shown

	Silent bool
	Part   bool // a call that is part of a message
	Depth  int64
	Calls  []int64 // the places of the calls that are part of it
}

// The flags of an entry.
const (
	flagSilent = 1
	flagPart   = 2
)

// flags gives the silent and part of an entry as one number.
func (e *Entry) flags() (n int64) {
	if e.Silent {
		n |= flagSilent
	}
	if e.Part {
		n |= flagPart
	}
	return n
}

// MarshalJSONTo writes the entry.
func (e Entry) MarshalJSONTo(enc *jsontext.Encoder) error {
	var buf [192]byte
	b := append(buf[:0], '[')
	b = strconv.AppendInt(b, e.Index, 10)
	b = append(b, ',')
	b, err := jsontext.AppendQuote(b, e.ID)
	if err != nil {
		return err
	}
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(e.Context), 10)
	b = append(b, ',')
	if b, err = jsontext.AppendQuote(b, e.Type); err != nil {
		return err
	}
	b = append(b, ',')
	b = strconv.AppendInt(b, e.Made, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, e.Hidden, 10)
	if flags := e.flags(); flags != 0 || e.Depth != 0 || len(e.Calls) > 0 {
		b = append(b, ',')
		b = strconv.AppendInt(b, flags, 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, e.Depth, 10)
		b = append(b, ",["...)
		for i, n := range e.Calls {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, n, 10)
		}
		b = append(b, ']')
	}
	return enc.WriteValue(append(b, ']'))
}

// UnmarshalJSONFrom reads the entry.
func (e *Entry) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var fields []jsontext.Value
	if err := json.UnmarshalDecode(dec, &fields); err != nil {
		return err
	}
	flags := int64(0)
	to := []any{&e.Index, &e.ID, &e.Context, &e.Type, &e.Made, &e.Hidden, &flags, &e.Depth, &e.Calls}
	if len(fields) != len(to) && len(fields) != len(to)-3 {
		return fmt.Errorf("an entry has %d or %d fields, not %d", len(to)-3, len(to), len(fields))
	}
	for i, raw := range fields {
		if err := json.Unmarshal(raw, to[i]); err != nil {
			return err
		}
	}
	e.Silent, e.Part = flags&flagSilent != 0, flags&flagPart != 0
	return nil
}
