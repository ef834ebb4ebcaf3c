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

// Lines splits a stream into lines at LF, CRLF and a lone CR, for a bufio.Scanner. A line is complete
// with its CR: a LF that follows later is skipped. The zero Lines is ready for use, for one stream.
type Lines struct{ begun, afterCR bool }

// byteOrderMark may precede a stream.
const byteOrderMark = "\ufeff"

// Split is a bufio.SplitFunc. What follows the last line end is a line, too.
func (l *Lines) Split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if !l.begun {
		if !atEOF && len(data) < len(byteOrderMark) && bytes.HasPrefix([]byte(byteOrderMark), data) {
			return 0, nil, nil
		}
		l.begun = true
		if bytes.HasPrefix(data, []byte(byteOrderMark)) {
			advance = len(byteOrderMark)
		}
	}
	if l.afterCR && len(data) > advance {
		l.afterCR = false
		if data[advance] == '\n' {
			advance++
		}
	}
	rest := data[advance:]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		end = len(rest)
	}
	if cr := bytes.IndexByte(rest[:end], '\r'); cr >= 0 {
		end, l.afterCR = cr, true
	}
	switch {
	case end < len(rest):
		return advance + end + 1, rest[:end], nil
	case atEOF && len(rest) > 0:
		return len(data), rest, nil
	}
	return advance, nil, nil
}
