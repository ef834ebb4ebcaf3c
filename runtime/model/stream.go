package model

import (
	"bufio"
	"io"

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
	return &eventReader{lines: lines}
}

// next reads an event. It returns false at the end of the stream, or with an error: an event that
// no empty line ends is none.
func (r *eventReader) next() bool {
	for r.lines.Scan() {
		if data, complete := r.events.Line(r.lines.Bytes()); complete {
			r.event = data
			return true
		}
	}
	return false
}

func (r *eventReader) err() error { return r.lines.Err() }
