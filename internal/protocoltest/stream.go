package protocoltest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// Request is a request of HTTP. A method that is not set is POST.
type Request struct {
	Method, Path, Body string
	Header             map[string]string
}

// Stream is an answer that is read as it arrives: events of server-sent events, or one document.
type Stream struct {
	t      testing.TB
	Status int
	Header http.Header
	Frames []Frame // what was read
	body   io.ReadCloser
	lines  *bufio.Reader
	cut    context.CancelFunc
	ended  bool
}

// Frame is an event of a stream.
type Frame struct {
	ID, Event, Data string
}

// Open sends a request, and returns its answer as soon as the headers are there.
func Open(t testing.TB, url string, r Request) *Stream {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	t.Cleanup(cut)
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	in, err := http.NewRequestWithContext(ctx, method, url+r.Path, strings.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	in.Header.Set("Content-Type", "application/json")
	in.Header.Set("Accept", "text/event-stream, application/json;q=0.9")
	for name, value := range r.Header {
		in.Header.Set(name, value)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, is := conn.(*net.TCPConn); is { // so that a reader that takes nothing is noticed soon
			err = tcp.SetReadBuffer(64 << 10)
		}
		return conn, err
	}
	transport := &http.Transport{DialContext: dial, ReadBufferSize: 16 << 10}
	t.Cleanup(transport.CloseIdleConnections)
	out, err := transport.RoundTrip(in)
	if err != nil {
		t.Fatalf("%s %s: %v", method, r.Path, err)
	}
	t.Cleanup(func() { _ = out.Body.Close() })
	return &Stream{t: t, Status: out.StatusCode, Header: out.Header, body: out.Body, lines: bufio.NewReader(out.Body), cut: cut}
}

// next reads an event. It returns false at the end of the answer, also where that is cut off.
func (s *Stream) next() bool {
	var f Frame
	for !s.ended {
		line, err := s.lines.ReadString('\n')
		s.ended = err != nil
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && f.Data != "":
			s.Frames = append(s.Frames, f)
			return true
		case name == "id":
			f.ID = value
		case name == "event":
			f.Event = value
		case name == "data":
			f.Data += value
		case strings.HasPrefix(line, "{"): // a document
			f.Data += line
		}
	}
	if f.Data != "" {
		s.Frames = append(s.Frames, f)
	}
	return false
}

// ReadTo reads until the text of the stream contains a piece.
func (s *Stream) ReadTo(p Protocol, piece string) {
	s.t.Helper()
	for !strings.Contains(p.Text(s.Frames), piece) {
		if !s.next() {
			s.t.Fatalf("%s: status %d, and no %q in %s", p.Name, s.Status, piece, s)
		}
	}
}

// ReadAll reads to the end.
func (s *Stream) ReadAll() *Stream {
	for s.next() {
	}
	return s
}

// Cut closes the connection.
func (s *Stream) Cut() {
	s.cut()
	_ = s.body.Close()
}

// Contains reports whether something that was read contains a piece.
func (s *Stream) Contains(piece string) bool { return strings.Contains(s.String(), piece) }

// String returns what was read.
func (s *Stream) String() string {
	var all strings.Builder
	for _, f := range s.Frames {
		all.WriteString(f.Data + "\n")
	}
	return all.String()
}

// idOf returns the first id in a text that a pattern finds.
func idOf(text, pattern string) string {
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}

// Execution returns the id of the execution that the answer is of, "" if it names none.
func (s *Stream) Execution() string {
	text := s.Header.Get("Skein-Execution-Id") + "\n" + s.String()
	if id := idOf(text, `(?:exe|resp)_([0-9a-f]{32,59})`); id != "" {
		return "exe_" + id
	}
	return ""
}

// Thread returns the id of the thread that the answer is of, "" if it names none.
func (s *Stream) Thread() string {
	return idOf(s.Header.Get("Skein-Thread-Id")+"\n"+s.String(), `(T-[0-9a-f-]{36})`)
}

// fields decodes the data of an event. What is no object has no fields.
func (f *Frame) fields() (m fields) {
	_ = json.Unmarshal([]byte(f.Data), &m)
	return m
}

// fields are the fields of an object of JSON.
type fields map[string]any

// of returns the fields of an object in it.
func (m fields) of(name string) fields {
	inner, _ := m[name].(map[string]any)
	return inner
}

// first returns the fields of the first object of a list in it.
func (m fields) first(name string) fields {
	list, _ := m[name].([]any)
	if len(list) == 0 {
		return nil
	}
	inner, _ := list[0].(map[string]any)
	return inner
}

// text returns a text in it.
func (m fields) text(name string) string {
	text, _ := m[name].(string)
	return text
}
