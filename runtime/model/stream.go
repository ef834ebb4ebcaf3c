package model

import (
	"bufio"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/internal/sse"
)

const eventStream = "text/event-stream"

// Event is the data of a server-sent event. Its name is not needed: the data has the type, too.
type Event []byte

// Over reports whether an event says that the stream has ended, as those of OpenAI's protocols do.
func (e Event) Over() bool { return string(e) == "[DONE]" }

// eventReader reads server-sent events.
type eventReader struct {
	lines  *bufio.Scanner
	events sse.Decoder
	event  Event // the last one; it stays valid
}

// newEventReader returns a reader of events of at most so many bytes.
func newEventReader(r io.Reader, most int64) *eventReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, int(most)+1)
	lines.Split(new(sse.Lines).Split)
	return &eventReader{lines: lines}
}

// next reads an event. It returns false at the end of the stream, or with an error. The last event
// needs no empty line after it, if it is whole.
func (r *eventReader) next() bool {
	for r.lines.Scan() {
		if data, complete := r.events.Line(r.lines.Bytes()); complete {
			r.event = data
			return true
		}
	}
	last, _ := r.events.Line(nil)
	if r.lines.Err() != nil || !Event(last).Over() && !jsontext.Value(last).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) { // it was cut off
		return false
	}
	r.event = last
	return true
}

func (r *eventReader) err() error { return r.lines.Err() }
