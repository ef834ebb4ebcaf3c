package protocoltest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// acp is the Agent Client Protocol. A conversation is a session, and all that concerns a run goes over
// the connection of its editor. To resume is to load the session over another one.
func acp() Protocol {
	on := func(s *Stream, line string) Request {
		return Request{do: func(t testing.TB, _ Server) *Stream {
			t.Helper()
			s.editor.write(t, line)
			return done(t)
		}}
	}
	opened := `{"id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	prompts := func(id int, session, text string) string {
		return fmt.Sprintf(`{"id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, session, text)
	}
	return Protocol{
		Name: "ACP", Follows: true,
		Begin: func(_, agent, text string) Request {
			return Request{do: func(t testing.TB, server Server) *Stream {
				t.Helper()
				e := edit(t, server, agent)
				e.write(t, opened)
				e.write(t, `{"id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
				session := e.until(t, 2).fields().of("result").text("sessionId")
				e.write(t, prompts(3, session, text))
				return e.stream(t, session, 3)
			}}
		},
		Cancel: func(_, _ string, s *Stream) Request {
			return on(s, fmt.Sprintf(`{"method":"session/cancel","params":{"sessionId":%q}}`, s.Thread()))
		},
		Grant: func(_, _ string, s *Stream) Request {
			return on(s, fmt.Sprintf(`{"id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}`, last(s, "id")))
		},
		Answer: func(_, _, text string, s *Stream) Request {
			return Request{do: func(t testing.TB, _ Server) *Stream {
				t.Helper()
				s.editor.write(t, prompts(4, s.Thread(), text))
				return s.editor.stream(t, s.Thread(), 4)
			}}
		},
		Reload: func(_, agent string, s *Stream) Request {
			return Request{do: func(t testing.TB, server Server) *Stream {
				t.Helper()
				e := edit(t, server, agent)
				e.write(t, opened)
				e.write(t, fmt.Sprintf(`{"id":2,"method":"session/load","params":{"sessionId":%q,"cwd":"/","mcpServers":[]}}`, s.Thread()))
				return e.stream(t, s.Thread(), 2)
			}}
		},
		Text: deltas(func(m fields) string {
			if u := m.of("params").of("update"); u.text("sessionUpdate") == "agent_message_chunk" {
				return u.of("content").text("text")
			}
			return ""
		}),
		Completed: `"stopReason":"end_turn"`, Cancelled: `"stopReason":"cancelled"`, Waits: `"session/request_permission"`,
	}
}

// editor is a client of the Agent Client Protocol.
type editor struct {
	in    io.WriteCloser
	lines chan string // what the server has written
}

// edit connects an editor to an agent.
func edit(t testing.TB, server Server, agent string) *editor {
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	e := &editor{in: in, lines: make(chan string, 10_000)}
	ctx, end := context.WithCancel(t.Context())
	go func() {
		_ = server.ACP(ctx, agent, toServer, fromServer) // what it refuses shows as the end of the lines
		_ = fromServer.Close()
	}()
	go func() {
		defer close(e.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			e.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		end()
	})
	return e
}

// write writes a message, without what all have.
func (e *editor) write(t testing.TB, message string) {
	t.Helper()
	if _, err := io.WriteString(e.in, strings.Replace(message, "{", `{"jsonrpc":"2.0",`, 1)+"\n"); err != nil {
		t.Fatal(err)
	}
}

// read returns the next message, and false when there is none.
func (e *editor) read(t testing.TB) (Frame, bool) {
	select {
	case line, more := <-e.lines:
		return Frame{Data: line}, more
	case <-time.After(patience):
		t.Fatal("an editor was not told anything")
		return Frame{}, false
	}
}

// until reads to the answer of a request.
func (e *editor) until(t testing.TB, id int) *Frame {
	t.Helper()
	for {
		f, more := e.read(t)
		if !more {
			t.Fatalf("the connection of an editor ended before the answer %d", id)
		}
		if f.answers(id) {
			return &f
		}
	}
}

// answers reports whether a frame is the answer of a request.
func (f *Frame) answers(id int) bool {
	m := f.fields()
	return m["method"] == nil && m["id"] == float64(id)
}

// stream is what an editor is told, to the answer of a request.
func (e *editor) stream(t testing.TB, session string, answer int) *Stream {
	ended := false
	return &Stream{
		t: t, Status: 200, thread: session, editor: e,
		read: func() (Frame, bool) {
			if ended {
				return Frame{}, false
			}
			f, more := e.read(t)
			ended = !more || f.answers(answer)
			return f, !ended
		},
		cut: func() { _ = e.in.Close() },
	}
}
