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
	"github.com/nats-io/nats.go"
)

// Server is where a server is reached.
type Server struct {
	URL  string                                                                     // of HTTP
	NATS *nats.Conn                                                                 // of an account that may prompt agents
	ACP  func(ctx context.Context, agent string, in io.Reader, out io.Writer) error // serves an editor
}

// Request is a request of HTTP, or does something else. A method that is not set is POST.
type Request struct {
	Method, Path, Body string
	Header             map[string]string
	thread             string // where the answer may not name it
	do                 func(testing.TB, Server) *Stream
}

// Stream is an answer that is read as it arrives: events of server-sent events, one document, lines, or
// messages.
type Stream struct {
	t      testing.TB
	Status int
	Header http.Header
	Frames []Frame // what was read
	read   func() (Frame, bool)
	cut    func()
	thread string  // where no frame names it
	editor *editor // of the Agent Client Protocol
}

// Frame is an event of a stream.
type Frame struct {
	ID, Event, Data string
}

// Open sends a request, and returns its answer as soon as the headers are there.
func Open(t testing.TB, server Server, r Request) *Stream {
	t.Helper()
	if r.do != nil {
		return r.do(t, server)
	}
	ctx, cut := context.WithCancel(t.Context())
	t.Cleanup(cut)
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	in, err := http.NewRequestWithContext(ctx, method, server.URL+r.Path, strings.NewReader(r.Body))
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
	lines, ended := bufio.NewReader(out.Body), false
	return &Stream{
		t: t, Status: out.StatusCode, Header: out.Header, thread: r.thread,
		read: func() (Frame, bool) { return readEvent(lines, &ended) },
		cut: func() {
			cut()
			_ = out.Body.Close()
		},
	}
}

// next reads an event. It returns false at the end of the answer, also where that is cut off.
func (s *Stream) next() bool {
	f, more := s.read()
	if more || f.Data != "" {
		s.Frames = append(s.Frames, f)
	}
	return more
}

// readEvent reads an event of server-sent events, or a document. It returns false at the end.
func readEvent(lines *bufio.Reader, ended *bool) (f Frame, more bool) {
	for !*ended {
		line, err := lines.ReadString('\n')
		*ended = err != nil
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && f.Data != "":
			return f, true
		case name == "id":
			f.ID = value
		case name == "event":
			f.Event = value
		case name == "data":
			f.Data += value
		case strings.HasPrefix(line, "{"), strings.HasPrefix(line, "["): // a document
			f.Data += line
		}
	}
	return f, false
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

// ReadToWait reads until the run waits for a person, or to the end.
func (s *Stream) ReadToWait(p Protocol) *Stream {
	for !(p.Follows && s.Contains(p.Waits)) && s.next() {
	}
	return s
}

// Cut closes the connection.
func (s *Stream) Cut() { s.cut() }

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
	if s.thread != "" {
		return s.thread
	}
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
