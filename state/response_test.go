package state_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/state"
)

// tooMuch writes more than the state of the thread, which large has filled, can hold.
func tooMuch(ctx context.Context) error {
	return state.Thread(ctx).Set(ctx, "more", strings.Repeat("x", 500_000))
}

// large returns the answer of a visit that fills most of its thread's state.
func (s *site) large() answer {
	return s.on(func(ctx context.Context, th *state.ThreadScope) error {
		fill := strings.Repeat("x", 400_000)
		return errors.Join(th.Set(ctx, "a", fill), th.Save(ctx), th.Set(ctx, "b", fill))
	})
}

// The state is saved before the first byte of the response leaves, so that a failure replaces
// the handler's response.
func TestResponse_SaveFails(t *testing.T) { // AG-37
	t.Parallel()
	s := open(t)
	thread := s.large()
	for name, write := range map[string]func(http.ResponseWriter) error{
		"writes nothing": func(http.ResponseWriter) error { return nil },
		"writes": func(w http.ResponseWriter) error {
			_, err := io.WriteString(w, "the handler's")
			return err
		},
		"writes a header": func(w http.ResponseWriter) error {
			w.Header().Set("Content-Length", "3")
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, "the")
			return err
		},
		"informs first": func(w http.ResponseWriter) error {
			w.WriteHeader(http.StatusEarlyHints)
			_, err := io.WriteString(w, "the handler's")
			return err
		},
		"flushes": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"copies": func(w http.ResponseWriter) error {
			_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("the handler's"))
			return err
		},
		"hijacks": func(w http.ResponseWriter) error {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return err
		},
	} {
		a := s.visit(func(w http.ResponseWriter, r *http.Request) error {
			err := tooMuch(r.Context())
			if failed := write(w); name != "writes nothing" && !refused(failed, events.PayloadTooLarge) {
				t.Errorf("a handler that %s: the error is %v", name, failed)
			}
			if _, err := io.WriteString(w, "more"); name != "writes nothing" && err == nil {
				t.Errorf("a handler that %s: it can write after that", name)
			}
			return err
		}, thread.next()...)
		if a.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "not saved") || !strings.Contains(a.body, "payload_too_large") || strings.Contains(a.body, "handler's") || a.cookie() == nil || a.header() != sign(key, thread.id()) {
			t.Errorf("a handler that %s: %d %s, %v", name, a.StatusCode, a.body, a.Header)
		}
	}
	if got := s.values(thread.id()); strings.Contains(got, "more") {
		t.Error("what was refused is stored")
	}
	if log := s.log.String(); !strings.Contains(log, "payload_too_large") || !strings.Contains(log, thread.id()) || !strings.Contains(log, "sess_") || !strings.Contains(log, `"more"`) {
		t.Errorf("the log is %.1000s", log)
	}
	page := must(client.Read(t.Context(), must(s.client.UpToDate(t.Context()))(t), events.ListLogs{ThreadID: thread.id()}))(t)
	if len(page.Logs) != 7 || !strings.Contains(page.Logs[0].Message, "not saved") || !strings.Contains(string(page.Logs[0].Data), "sess_") {
		t.Errorf("the thread's log has %d lines: %v", len(page.Logs), page.Logs)
	}
}

// A server that is gone is answered with 503, and only by requests that have written.
func TestResponse_ServerIsGone(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.nc.Close()
	wrote := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", 1) })
	not := s.on(func(context.Context, *state.ThreadScope) error { return nil })
	if wrote.StatusCode != http.StatusServiceUnavailable || !strings.Contains(wrote.body, "unavailable") || not.StatusCode != http.StatusOK {
		t.Errorf("the answers are %d %s and %d", wrote.StatusCode, wrote.body, not.StatusCode)
	}
}

// What is written after the first byte is saved when the handler returns, before the response
// ends; if that fails, the response stays as it is.
func TestResponse_Streams(t *testing.T) { // AG-37
	t.Parallel()
	s := open(t)
	goOn := make(chan struct{})
	path := s.handle(func(w http.ResponseWriter, r *http.Request) error {
		ctx, th := r.Context(), state.Thread(r.Context())
		err := th.Set(ctx, "before", 1)
		_, _ = io.WriteString(w, "one ")
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		<-goOn
		_, _ = io.WriteString(w, "two")
		if r.Header.Get("fails") != "" {
			return errors.Join(err, tooMuch(ctx))
		}
		return errors.Join(err, th.Set(ctx, "after", 1))
	})
	for _, fails := range []bool{false, true} {
		thread := s.large()
		r := s.request(path, thread.next()...)
		if fails {
			r.Header.Set("fails", "yes")
		}
		response := must(s.http.Do(r))(t)
		chunk := make([]byte, 4)
		_, err := io.ReadFull(response.Body, chunk)
		if got := s.values(thread.id()); err != nil || string(chunk) != "one " || !strings.HasSuffix(got, `"before":1}`) || response.Header.Get("x-thread-id") != thread.header() {
			t.Errorf("the first part is %q, %v; the state ends with %s", chunk, err, got[len(got)-20:])
		}
		goOn <- struct{}{}
		rest, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if got := s.values(thread.id()); err != nil || string(rest) != "two" || strings.HasSuffix(got, `"after":1}`) == fails {
			t.Errorf("the rest is %q, %v; the state ends with %s", rest, err, got[len(got)-20:])
		}
	}
	s.drain()
	if strings.Count(s.log.String(), "was not saved") != 1 {
		t.Errorf("the log is %s", s.log)
	}
}

// A handler that panics is net/http's, and what it has not saved is dropped.
func TestResponse_HandlerPanics(t *testing.T) {
	t.Parallel()
	s := open(t)
	thread := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", 1) })
	path := s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		ctx, th := r.Context(), state.Thread(r.Context())
		if err := errors.Join(th.Set(ctx, "saved", 1), th.Save(ctx), th.Set(ctx, "half", 1)); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	})
	if response, err := s.http.Do(s.request(path, thread.next()...)); err == nil {
		_ = response.Body.Close()
		t.Errorf("it is answered with %d", response.StatusCode)
	}
	s.drain()
	if got := s.values(thread.id()); got != `{"a":1,"saved":1}` || !strings.Contains(s.log.String(), `"half"`) {
		t.Errorf("the state is %s, the log %s", got, s.log)
	}
}

// A client that leaves changes nothing: what the handler has written is saved.
func TestResponse_ClientLeaves(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := make(chan string, 1)
	reached := make(chan struct{})
	path := s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		th := state.Thread(r.Context())
		close(reached)
		<-r.Context().Done()
		id <- th.ID
		return th.Set(r.Context(), "a", 1)
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-reached; leave() }()
	if response, err := s.http.Do(s.request(path).WithContext(ctx)); err == nil {
		_ = response.Body.Close()
		t.Error("the client has not left")
	}
	thread := <-id
	s.drain()
	if got := s.values(thread); got != `{"a":1}` {
		t.Errorf("the state is %s", got)
	}
}

// A handler that takes the connection over is saved before and after.
func TestResponse_Hijack(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := ""
	path := s.handle(func(w http.ResponseWriter, r *http.Request) error {
		ctx, th := r.Context(), state.Thread(r.Context())
		id = th.ID
		if err := th.Set(ctx, "before", 1); err != nil {
			return err
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		if th.Dirty() {
			t.Error("it is not saved before")
		}
		_, _ = buffered.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
		err = errors.Join(buffered.Flush(), th.Set(ctx, "after", 1))
		return errors.Join(err, conn.Close())
	})
	if a := s.get(path); a.body != "raw" {
		t.Errorf("the answer is %d %q", a.StatusCode, a.body)
	}
	s.drain()
	if got := s.values(id); got != `{"before":1,"after":1}` {
		t.Errorf("the state is %s", got)
	}
}

// Files, statuses, early hints and the features of HTTP/2 pass through.
func TestResponse_PassesThrough(t *testing.T) {
	t.Parallel()
	s := open(t)
	file := filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(file, []byte("contents"), 0o600); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(state.Middleware(s.app)(state.Middleware(s.app)(s))) // twice is as once
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(web.Close)
	s.url, s.http = web.URL, web.Client()
	set := func(r *http.Request) error { return state.Thread(r.Context()).Set(r.Context(), "a", 1) }
	for name, c := range map[string]struct {
		handler func(http.ResponseWriter, *http.Request) error
		status  int
		body    string
	}{
		"file": {func(w http.ResponseWriter, r *http.Request) error {
			err := set(r)
			http.ServeFile(w, r, file)
			return err
		}, 200, "contents"},
		"error": {func(w http.ResponseWriter, r *http.Request) error {
			err := set(r)
			http.Error(w, "no", http.StatusTeapot)
			return err
		}, 418, "no\n"},
		"early hints": {func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			err := set(r)
			w.WriteHeader(http.StatusAccepted)
			return err
		}, 202, ""},
		"flusher": {func(w http.ResponseWriter, r *http.Request) error {
			err := set(r)
			w.(http.Flusher).Flush()
			_, _ = bufio.NewReader(strings.NewReader("flushed")).WriteTo(w)
			return err
		}, 200, "flushed"},
		"no hijacking": {func(w http.ResponseWriter, r *http.Request) error {
			if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("HTTP/2 is hijacked: %v", err)
			}
			return errors.Join(set(r), http.NewResponseController(w).EnableFullDuplex())
		}, 200, ""},
	} {
		a := s.visit(c.handler)
		if a.ProtoMajor != 2 || a.StatusCode != c.status || a.body != c.body || a.id() == "" || len(a.Cookies()) != 1 || !a.Cookies()[0].Secure {
			t.Errorf("%s: %s %d %q, %v", name, a.Proto, a.StatusCode, a.body, a.Header)
			continue
		}
		if got := s.values(a.id()); got != `{"a":1}` {
			t.Errorf("%s: the state is %s", name, got)
		}
	}
}
