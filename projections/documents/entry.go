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
// of the work.
type Entry struct {
	Index   int64
	ID      string
	Context int // its place in the page's list of contexts
	Type    events.ItemType
	Made    int64
	Hidden  int64 // 0: it is shown
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
	return enc.WriteValue(append(b, ']'))
}

// UnmarshalJSONFrom reads the entry.
func (e *Entry) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var fields []jsontext.Value
	if err := json.UnmarshalDecode(dec, &fields); err != nil {
		return err
	}
	to := []any{&e.Index, &e.ID, &e.Context, &e.Type, &e.Made, &e.Hidden}
	if len(fields) != len(to) {
		return fmt.Errorf("an entry has %d fields, not %d", len(to), len(fields))
	}
	for i, raw := range fields {
		if err := json.Unmarshal(raw, to[i]); err != nil {
			return err
		}
	}
	return nil
}
