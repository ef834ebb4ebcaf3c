// Package sse decodes streams of server-sent events, of which only the data matters here: comments,
// ids and the names of events say nothing.
package sse

import "bytes"

// Decoder collects the data of one event after another. The zero Decoder is ready for use.
type Decoder struct {
	data []byte
	some bool // a line of data has come: it may be empty
}

// Line takes the next line of a stream, without its end. complete reports whether it ends an event
// that has data, which stays valid.
func (d *Decoder) Line(line []byte) (data []byte, complete bool) {
	if len(line) == 0 {
		data, complete = d.data, d.some
		*d = Decoder{}
		return data, complete
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	if string(field) != "data" {
		return nil, false
	}
	if d.some {
		d.data = append(d.data, '\n')
	}
	d.data, d.some = append(d.data, bytes.TrimPrefix(value, []byte{' '})...), true
	return nil, false
}

// Begun returns the data so far of an event that has not ended.
func (d *Decoder) Begun() []byte { return d.data }
