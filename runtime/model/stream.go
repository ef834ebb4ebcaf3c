package model

import (
	"bufio"
	"bytes"
	"io"
)

const eventStream = "text/event-stream"

// Event is the data of a server-sent event. Its name is not needed: the data has the type, too.
type Event []byte

// Over reports whether an event says that the stream has ended, as those of OpenAI's protocols do.
func (e Event) Over() bool { return string(e) == "[DONE]" }

// eventReader reads server-sent events.
type eventReader struct {
	lines *bufio.Scanner
	event Event // the last one; it stays valid
}

// newEventReader returns a reader of events of at most so many bytes.
func newEventReader(r io.Reader, most int64) *eventReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, int(most)+1)
	return &eventReader{lines: lines}
}

// next reads an event. It returns false at the end of the stream, or with an error: an event that
// no empty line ends is none.
func (r *eventReader) next() bool {
	var e Event
	for r.lines.Scan() {
		line := r.lines.Bytes()
		if len(line) == 0 && e != nil {
			r.event = e
			return true
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		if string(field) != "data" { // comments, ids and names
			continue
		}
		if e != nil {
			e = append(e, '\n')
		}
		if e = append(e, bytes.TrimPrefix(value, []byte{' '})...); e == nil {
			e = Event{} // data without text is data
		}
	}
	return false
}

func (r *eventReader) err() error { return r.lines.Err() }
