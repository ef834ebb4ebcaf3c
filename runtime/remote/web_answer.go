package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/internal/sse"
)

// The media types of answers.
const (
	ofJSON   = "application/json"
	ofNDJSON = "application/x-ndjson"
	ofSSE    = "text/event-stream"
)

// read reads the messages of an answer, in the form that its media type says, up to the
// last one. It calls alive with each sign of life.
func (w *web) read(response *http.Response, a *answer, alive func()) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		kind = response.Header.Get("Content-Type")
	}
	switch kind {
	case ofJSON:
		return w.readWhole(response.Body, a)
	case ofNDJSON, "application/ndjson", "application/jsonl":
		return w.readLines(response.Body, a, alive, splitJSONLines, func(line []byte) ([]byte, bool) { return line, len(line) > 0 })
	case ofSSE:
		var stream sse.Decoder
		return w.readLines(response.Body, a, alive, new(sse.Lines).Split, func(line []byte) ([]byte, bool) {
			if data, complete := stream.Line(line); complete {
				return data, true
			}
			begun := stream.Begun()
			return begun, int64(len(begun)) > a.most // which ends the answer
		})
	}
	return nil, w.wrong("has the content type %q (status %d); it must be %s, %s or %s", clip(kind), response.StatusCode, ofJSON, ofNDJSON, ofSSE)
}

// readWhole reads an answer of one message.
func (w *web) readWhole(body io.Reader, a *answer) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, a.most+1))
	if err != nil {
		return nil, w.brokeOff()
	}
	result, err := a.take(raw)
	if err == nil && result == nil {
		return nil, w.wrong("is one message of a kind that does not end an answer; send a result or an error, or stream")
	}
	return result, err
}

// readLines reads an answer of many messages. message turns lines into messages: it
// returns one with the line that completes it.
func (w *web) readLines(body io.Reader, a *answer, alive func(), split bufio.SplitFunc, message func(line []byte) ([]byte, bool)) ([]byte, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 4096), int(a.most)+64) // a line of SSE has a field's name, too
	lines.Split(split)
	for empty := int64(0); lines.Scan(); {
		alive()
		m, ok := message(lines.Bytes())
		if !ok {
			if empty += int64(len(lines.Bytes())) + 1; empty > streamOf*a.most {
				return nil, a.tooLarge()
			}
			continue
		}
		if result, err := a.take(m); result != nil || err != nil {
			return bytes.Clone(result), err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, a.tooLarge()
	}
	return nil, w.brokeOff()
}

// brokeOff returns the error of an answer that ended before its last message.
func (w *web) brokeOff() error {
	return w.retry("the answer ended before its last message; the call may have been made")
}

// splitJSONLines splits at LF and CRLF. What follows the last line end was cut off, unless it is a
// whole JSON value.
func splitJSONLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, bytes.TrimSuffix(data[:i], []byte{'\r'}), nil
	}
	if atEOF && jsontext.Value(data).IsValid() {
		return len(data), data, nil
	}
	return 0, nil, nil
}
