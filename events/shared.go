package events

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// One value is often part of several events of a commit: a tool's output is in the part of the
// call, in the item of its result, in the message that shows the part, and in the outcome of
// the step. The commit's body holds a large value once, in the first of them. In the others
// null stands in its place, and the attribute shared names, for each null, the event and the
// value that belong there:
//
//	"shared":"/content/output=0/part/output"
//
// Both sides are JSON Pointers (RFC 6901) into data; the number is the index of the event in
// the body. Only the body of a commit has this form: decoded events, the timeline and every
// reply hold complete events.

// ShareBytes is the size of a value from which a commit's body holds it only once.
const ShareBytes = 1 << 10

const (
	shareDepth = 4 // of a shared value in data
	sharedName = `,"shared":`
	dataKey    = "data"
	sharedKey  = "shared"
)

// maxShared bounds the total size of a commit's complete events.
const maxShared = 4 * MaxCommitBytes

// Stored returns the bytes of the event in the body of its commit, nil if it was not decoded
// from one. They differ from Raw where the body holds a value in another event.
func (e *Event) Stored() []byte {
	if e.stored != nil {
		return e.stored
	}
	return e.raw
}

// AppendStored appends the event to b in the form in which its commit's body holds it.
func (e *Event) AppendStored(b []byte) ([]byte, error) {
	if e.shared == "" || e.namesParts() {
		return e.appendComplete(b)
	}
	raw, err := e.Append(nil)
	if err != nil {
		return b, err
	}
	refs, err := parseRefs(e.shared)
	if err != nil {
		return b, err
	}
	return refs.cut(b, raw, e.shared)
}

// appendComplete appends the event to b completely, or with the names of parts.
func (e *Event) appendComplete(b []byte) ([]byte, error) {
	if e.namesParts() {
		return e.appendNamed(b)
	}
	return e.Append(b)
}

// Whole returns the total size of the commit's complete events.
func (c *Commit) Whole() int {
	size := 0
	for i := range c.Events {
		size += len(c.Events[i].raw)
	}
	return size
}

// Largest returns the size of the largest message that the commit needs: its body, or one of
// its events on the timeline, where events are complete. A commit whose complete events have
// more than four times the size of the largest body counts as larger than that.
func (c *Commit) Largest() int {
	size := max(len(c.Body), (c.Whole()+3)/4)
	for i := range c.Events {
		if e := &c.Events[i]; e.stored != nil {
			size = max(size, len(e.raw))
		}
	}
	return size
}

// shareValues returns the body in which each large value stands once, and sets what the events
// have in it. The events are encoded completely, or with the names of parts.
func shareValues(body []byte, list []Event) ([]byte, error) {
	large := 0
	for i := range list {
		if len(list[i].raw) >= ShareBytes {
			large++
		}
	}
	if large < 2 {
		return body, nil
	}
	seen := map[string]string{} // by its bytes: the event and the place of a value
	out := make([]byte, 0, len(body))
	out = append(out, '[')
	ends := make([]int, len(list))
	for i := range list {
		e := &list[i]
		if i > 0 {
			out = append(out, ',')
		}
		if !e.namesParts() && len(e.raw) >= ShareBytes {
			shared, err := findShared(e.raw, i, seen)
			if err != nil {
				return nil, fmt.Errorf("event %s: %w", e.Type, err)
			}
			e.shared = shared
		}
		if e.shared == "" {
			out = append(out, e.raw...)
		} else {
			refs, err := parseRefs(e.shared)
			if err != nil {
				return nil, err
			}
			if out, err = refs.cut(out, e.raw, e.shared); err != nil {
				return nil, err
			}
		}
		ends[i] = len(out)
	}
	if !slices.ContainsFunc(list, func(e Event) bool { return e.shared != "" }) {
		return body, nil
	}
	out = append(out, ']')
	from := 1
	for i, end := range ends {
		if e := &list[i]; e.shared != "" {
			e.stored = out[from:end:end]
		}
		from = end + 1
	}
	return out, nil
}

// findShared returns the references of an event to values that earlier events hold, and adds
// its own values to them.
func findShared(raw []byte, index int, seen map[string]string) (string, error) {
	_, data, err := eventMembers(raw)
	if err != nil {
		return "", err
	}
	var refs []byte
	own := map[string]string{}
	walk(raw[data.from:data.to], 0, "", 0, func(path string, from, to int) bool {
		if to-from < ShareBytes {
			return false
		}
		value := string(raw[data.from+from : data.from+to])
		if at, ok := seen[value]; ok {
			if len(refs) > 0 {
				refs = append(refs, ' ')
			}
			refs = append(append(append(refs, path...), '='), at...)
			return false
		}
		if _, ok := own[value]; !ok {
			own[value] = strconv.Itoa(index) + path
		}
		return true
	})
	for value, at := range own {
		seen[value] = at
	}
	return string(refs), nil
}

// span is a range of bytes.
type span struct{ from, to int }

// eventMembers returns where an event has the attribute shared, with the comma before it, and the
// value of data. What is absent is empty.
func eventMembers(raw []byte) (shared, data span, err error) {
	end := -1 // of the member before
	each(raw, func(name []byte, from, to int) {
		switch string(name) {
		case sharedKey:
			if shared = (span{end, to}); end < 0 {
				err = fmt.Errorf("%w: the attribute shared comes first", errEnvelope)
			}
		case dataKey:
			data = span{from, to}
		}
		end = to
	})
	return shared, data, err
}

// each calls f with each element of an array, or each member of an object, up to the first
// place that is not JSON.
func each(v []byte, f func(name []byte, from, to int)) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	start, err := dec.ReadToken()
	if err != nil || start.Kind() != '{' && start.Kind() != '[' {
		return
	}
	for n := 0; ; n++ {
		var name []byte
		switch kind := dec.PeekKind(); {
		case kind == '}' || kind == ']' || kind == 0:
			return
		case start.Kind() == '{':
			quoted, err := dec.ReadValue()
			if err != nil {
				return
			}
			name, _ = jsontext.AppendUnquote(nil, quoted)
		default:
			name = strconv.AppendInt(nil, int64(n), 10)
		}
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		to := int(dec.InputOffset())
		f(name, to-len(value), to)
	}
}

// walk calls see with each value in v that can be shared, and its pointer. If see returns true,
// what is in the value follows.
func walk(v []byte, at int, path string, depth int, see func(path string, from, to int) bool) {
	if depth == shareDepth {
		return
	}
	each(v, func(name []byte, from, to int) {
		if !pointable(name) {
			return
		}
		own := path + "/" + string(name)
		if see(own, at+from, at+to) {
			walk(v[from:to], at+from, own, depth+1, see)
		}
	})
}

// pointable reports whether a name is short, and needs no escapes in a pointer or in the attribute
// shared.
func pointable(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !isDigit(c) && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return len(name) <= 64
}

// sharedRefs are the references of an event: by the pointer of a null, what belongs there.
type sharedRefs map[string]string

func parseRefs(shared string) (sharedRefs, error) {
	out := sharedRefs{}
	for ref := range strings.SplitSeq(shared, " ") {
		at, from, ok := strings.Cut(ref, "=")
		if _, twice := out[at]; !ok || twice {
			return nil, fmt.Errorf("%w: malformed attribute shared", errEnvelope)
		}
		out[at] = from
	}
	return out, nil
}

// places returns where the values of the references stand in data, in that order.
func (r sharedRefs) places(data []byte) (found []span, from []string, err error) {
	walk(data, 0, "", 0, func(path string, at, to int) bool {
		value, ok := r[path]
		if ok {
			found, from = append(found, span{at, to}), append(from, value)
		}
		return !ok
	})
	if len(found) != len(r) {
		return nil, nil, fmt.Errorf("%w: the attribute shared names %d values, and data has %d of them", errEnvelope, len(r), len(found))
	}
	return found, from, nil
}

// cut appends a complete event to b without the values of the references.
func (r sharedRefs) cut(b, raw []byte, shared string) ([]byte, error) {
	_, data, err := eventMembers(raw)
	if err != nil {
		return b, err
	}
	places, _, err := r.places(raw[data.from:data.to])
	if err != nil {
		return b, err
	}
	b = append(b, raw[:data.from-len(dataName)]...)
	b = append(b, sharedName...)
	b = appendQuote(b, shared)
	b = append(b, dataName...)
	last := data.from
	for _, p := range places {
		b = append(append(b, raw[last:data.from+p.from]...), "null"...)
		last = data.from + p.to
	}
	return append(b, raw[last:]...), nil
}

// sharedValues completes the events of a body that name values of earlier ones.
type sharedValues struct {
	values map[string][]byte // of the first events, by event and place
	known  int               // how many events these are
	size   int               // of the events that were completed
}

// decode decodes the event that follows others in a body.
func (s *sharedValues) decode(raw []byte, before []Event) (Event, error) {
	if !bytes.Contains(raw, []byte(`"`+sharedKey+`"`)) {
		return decodeEvent(raw)
	}
	whole, shared, err := s.complete(raw, before)
	if err != nil {
		return Event{}, err
	}
	e, err := DecodeEvent(whole)
	if shared != "" {
		e.stored, e.shared = raw, shared
	}
	return e, err
}

// complete returns the event with the values that it names.
func (s *sharedValues) complete(raw []byte, before []Event) (whole []byte, shared string, err error) {
	attribute, data, err := eventMembers(raw)
	if err != nil || attribute == (span{}) {
		return raw, "", err
	}
	var w struct {
		Shared string `json:"shared"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, "", fmt.Errorf("%w: %w", errEnvelope, err)
	}
	refs, err := parseRefs(w.Shared)
	if err != nil {
		return nil, "", err
	}
	places, from, err := refs.places(raw[data.from:data.to])
	if err != nil {
		return nil, "", err
	}
	s.learn(before)
	write := func(b []byte, part span) []byte { // without the attribute
		if part.from <= attribute.from && attribute.to <= part.to {
			b = append(b, raw[part.from:attribute.from]...)
			part.from = attribute.to
		}
		return append(b, raw[part.from:part.to]...)
	}
	last := 0
	for i, p := range places {
		value, ok := s.values[from[i]]
		switch {
		case !ok:
			return nil, "", fmt.Errorf("%w: no earlier event of the commit has the shared value %s", errEnvelope, clip(from[i]))
		case string(raw[data.from+p.from:data.from+p.to]) != "null":
			return nil, "", fmt.Errorf("%w: it both holds and names the shared value %s", errEnvelope, clip(from[i]))
		}
		if s.size += len(value); s.size > maxShared {
			return nil, "", fmt.Errorf("%w: the commit's events have more than %d bytes in total", errEnvelope, maxShared)
		}
		whole = append(write(whole, span{last, data.from + p.from}), value...)
		last = data.from + p.to
	}
	return write(whole, span{last, len(raw)}), w.Shared, nil
}

// learn adds the values of events.
func (s *sharedValues) learn(before []Event) {
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	for ; s.known < len(before); s.known++ {
		raw := before[s.known].raw
		_, data, err := eventMembers(raw)
		if err != nil || len(raw) < ShareBytes {
			continue
		}
		index := strconv.Itoa(s.known)
		walk(raw[data.from:data.to], 0, "", 0, func(path string, from, to int) bool {
			if to-from < ShareBytes {
				return false
			}
			s.values[index+path] = raw[data.from+from : data.from+to]
			return true
		})
	}
}
