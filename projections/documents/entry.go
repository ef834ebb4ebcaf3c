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
// A page is rewritten for each item, so an entry is a list rather than an object: [index, id,
// context, type, made, hidden], which is half the size and a tenth of the work. An entry that
// is silent, nested, or related to calls has three more fields: flags, depth and calls.
type Entry struct {
	Index   int64
	ID      string
	Context int // index in the page's list of contexts
	Type    events.ItemType
	Made    int64
	Hidden  int64 // 0: it is shown

	Silent bool
	Part   bool // a call that belongs to a message
	Depth  int64
	Calls  []int64 // the indexes of the calls that belong to it
}

// The flags of an entry.
const (
	flagSilent = 1
	flagPart   = 2
)

// flags returns the silent and part fields of an entry as one number.
func (e *Entry) flags() (n int64) {
	if e.Silent {
		n |= flagSilent
	}
	if e.Part {
		n |= flagPart
	}
	return n
}

// MarshalJSONTo encodes the entry.
func (e Entry) MarshalJSONTo(enc *jsontext.Encoder) error {
	var buf [192]byte
	b, err := e.AppendJSON(buf[:0])
	if err != nil {
		return err
	}
	return enc.WriteValue(b)
}

// AppendJSON appends the entry's JSON to b. It implements jsonplan.Appender.
func (e Entry) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, '[')
	b = strconv.AppendInt(b, e.Index, 10)
	b = append(b, ',')
	b, err := jsontext.AppendQuote(b, e.ID)
	if err != nil {
		return b, err
	}
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(e.Context), 10)
	b = append(b, ',')
	if b, err = jsontext.AppendQuote(b, e.Type); err != nil {
		return b, err
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
	return append(b, ']'), nil
}

// UnmarshalJSONFrom decodes the entry. A list decodes a thousand of them, so the form of
// MarshalJSONTo is decoded byte by byte, and only other forms of the same JSON field by field.
func (e *Entry) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	fast := entryReader{rest: raw}
	if read, ok := fast.entry(); ok {
		*e = read
		return nil
	}
	return e.decode(events.JSON(raw))
}

// decode decodes the entry field by field.
func (e *Entry) decode(raw events.JSON) error {
	var fields []events.JSON
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	*e = Entry{}
	flags := int64(0)
	to := []any{&e.Index, &e.ID, &e.Context, &e.Type, &e.Made, &e.Hidden, &flags, &e.Depth, &e.Calls}
	if len(fields) != len(to) && len(fields) != len(to)-3 {
		return fmt.Errorf("index entry: has %d or %d fields, not %d", len(to)-3, len(to), len(fields))
	}
	for i, raw := range fields {
		if err := json.Unmarshal(raw, to[i]); err != nil {
			return err
		}
	}
	e.Silent, e.Part = flags&flagSilent != 0, flags&flagPart != 0
	return nil
}

// entryReader decodes an entry in exactly the form in which it is encoded.
type entryReader struct {
	rest []byte
	bad  bool
}

func (r *entryReader) entry() (e Entry, ok bool) {
	r.byte('[')
	e.Index = r.number()
	r.byte(',')
	e.ID = r.text()
	r.byte(',')
	e.Context = int(r.number())
	r.byte(',')
	e.Type = r.kind()
	r.byte(',')
	e.Made = r.number()
	r.byte(',')
	e.Hidden = r.number()
	if !r.bad && len(r.rest) > 0 && r.rest[0] == ',' {
		r.byte(',')
		flags := r.number()
		e.Silent, e.Part = flags&flagSilent != 0, flags&flagPart != 0
		r.byte(',')
		e.Depth = r.number()
		r.byte(',')
		e.Calls = r.numbers()
	}
	r.byte(']')
	return e, !r.bad && len(r.rest) == 0
}

func (r *entryReader) byte(want byte) {
	if len(r.rest) == 0 || r.rest[0] != want {
		r.bad, r.rest = true, nil
		return
	}
	r.rest = r.rest[1:]
}

func (r *entryReader) number() (n int64) {
	i := 0
	for ; i < len(r.rest) && i < 18 && r.rest[i] >= '0' && r.rest[i] <= '9'; i++ {
		n = n*10 + int64(r.rest[i]-'0')
	}
	if i == 0 {
		r.bad = true
	}
	r.rest = r.rest[i:]
	return n
}

func (r *entryReader) numbers() (list []int64) {
	r.byte('[')
	for !r.bad && len(r.rest) > 0 && r.rest[0] != ']' {
		if list != nil {
			r.byte(',')
		}
		list = append(list, r.number())
	}
	r.byte(']')
	return list
}

// quoted returns the text between quotes. It refuses escapes.
func (r *entryReader) quoted() []byte {
	r.byte('"')
	for i, c := range r.rest {
		switch c {
		case '"':
			in := r.rest[:i]
			r.rest = r.rest[i+1:]
			return in
		case '\\':
			r.bad = true
			return nil
		}
	}
	r.bad = true
	return nil
}

func (r *entryReader) text() string { return string(r.quoted()) }

// kind returns the type of an item without copying its name.
func (r *entryReader) kind() events.ItemType {
	switch name := r.quoted(); string(name) {
	case string(events.Message):
		return events.Message
	case string(events.ActionExecute):
		return events.ActionExecute
	case string(events.ActionResult):
		return events.ActionResult
	default:
		return events.ItemType(name)
	}
}
