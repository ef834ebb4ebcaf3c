package api_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// SA-162, SA-163: the very bodies; no path is answered with a redirect.
func TestEndpoints_ErrorsAreExact(t *testing.T) {
	w := newWorld(t)
	thread := w.thread("hello")
	missing := "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"
	for name, c := range map[string]struct {
		tenant, path string
		status       int
		body         string // exact, if it begins with {"error":"
	}{
		"no thread":                  {"acme", "/threads/" + missing + "/summary", 404, `{"error":"Thread not found: ` + missing + `"}`},
		"another tenant's":           {"other", "/threads/" + thread + "/summary", 404, `{"error":"Thread not found: ` + thread + `"}`},
		"no id of a thread":          {"acme", "/threads/nonsense/export", 404, `{"error":"Thread not found: nonsense"}`},
		"dots":                       {"acme", "/threads/../summary", 404, `{"error":"Thread not found: .."}`},
		"an escaped slash":           {"acme", "/threads/a%2Fb/summary", 404, `{"error":"Thread not found: a/b"}`},
		"a nul":                      {"acme", "/threads/a%00b/files", 404, `{"error":"Thread not found: a\u0000b"}`},
		"no key":                     {"acme", "/threads/key:none/messages", 404, `{"error":"Thread not found: key:none"}`},
		"a bad key":                  {"acme", "/threads/key:%0A/messages", 404, `{"error":"Thread not found: key:\n"}`},
		"nothing":                    {"acme", "/threads/", 400, `{"error":"Thread ID required"}`},
		"nothing, without its slash": {"acme", "/threads", 400, `{"error":"Thread ID required"}`},
		"an empty id":                {"acme", "/threads//summary", 400, `{"error":"Thread ID required"}`},
		"no endpoint":                {"acme", "/threads/" + thread, 404, "there is no thread endpoint"},
		"an unknown endpoint":        {"acme", "/threads/" + thread + "/nonsense", 404, "there is no thread endpoint"},
		"an endpoint and more":       {"acme", "/threads/" + thread + "/summary/more", 404, "there is no thread endpoint"},
		"no tenant":                  {"", "/threads/" + thread + "/summary", 401, "names no tenant"},
		"a bad limit":                {"acme", "/threads/" + thread + "/messages?limit=x", 400, `"param":"limit"`},
		"a negative offset":          {"acme", "/threads/" + thread + "/messages?offset=-1", 400, `"param":"offset"`},
	} {
		status, _, body := w.do(http.MethodGet, c.tenant, c.path)
		exact := strings.HasPrefix(c.body, `{"error":"`)
		if status != c.status || exact && body != c.body || !strings.Contains(body, c.body) {
			t.Errorf("%s: %d %s, not %d %s", name, status, body, c.status, c.body)
		}
	}
	status, header, body := w.do(http.MethodPost, "acme", "/threads/"+thread+"/summary")
	if status != http.StatusMethodNotAllowed || header.Get("Allow") != "GET, HEAD" || !strings.Contains(body, `"method_not_allowed"`) {
		t.Errorf("POST: %d %q %s", status, header.Get("Allow"), body)
	}
}

// Who would create a thread under /threads is told where that is done.
func TestEndpoints_PostWithoutThread(t *testing.T) {
	w := newWorld(t)
	if status, _, body := w.do("POST", "acme", "/threads"); status != 404 || !strings.Contains(body, "POST /api/threads") {
		t.Errorf("%d %s", status, body)
	}
}

// SA-164, SA-165, SA-166, SA-167: the endpoints of every server, by the thread's id and by its key.
func TestEndpoints_BuiltIn(t *testing.T) {
	w := newWorld(t)
	var texts []string
	for i := range 12 {
		texts = append(texts, strings.Repeat("x", i+1))
	}
	before := time.Now().Truncate(time.Millisecond)
	thread := w.thread(texts...)
	if _, err := w.client("acme").Files(thread).WriteFile(t.Context(), "/notes/a.txt", []byte("a"), "text/plain", client.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	if status, body := w.get("/threads/" + thread + "/summary"); status != 200 || body != `{"threadId":"`+thread+`","messageCount":12}` {
		t.Errorf("summary: %d %s", status, body)
	}
	if status, body := w.get("/threads/" + url.PathEscape("key:endpoints") + "/summary"); status != 200 || !strings.Contains(body, thread) {
		t.Errorf("summary by key: %d %s", status, body)
	}

	page := func(query string) (contents []string, total int64, more bool) {
		t.Helper()
		status, body := w.get("/threads/" + thread + "/messages" + query)
		var list events.MessageList
		if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 {
			t.Fatalf("%d %s: %v", status, body, err)
		}
		for _, m := range list.Messages {
			contents = append(contents, *m.Content)
		}
		return contents, list.Total, list.HasMore
	}
	if got, total, more := page(""); len(got) != 12 || got[0] != texts[11] || total != 12 || more {
		t.Errorf("messages: %q of %d, %v", got, total, more)
	}
	if got, total, more := page("?limit=2&offset=3"); len(got) != 2 || got[0] != texts[8] || got[1] != texts[7] || total != 12 || !more {
		t.Errorf("a page: %q of %d, %v", got, total, more)
	}
	if got, total, _ := page("?limit=0"); len(got) != 0 || total != 12 {
		t.Errorf("an empty page: %q of %d", got, total)
	}

	status, body := w.get("/threads/" + thread + "/export")
	var exported struct {
		ExportedAt time.Time
		Thread     struct {
			ID, Agent, User string
			CreatedAt       int64
		}
		Messages []events.ThreadMessage
	}
	if err := json.Unmarshal([]byte(body), &exported); err != nil || status != 200 {
		t.Fatalf("export: %d %s: %v", status, body, err)
	}
	if x := exported; x.ExportedAt.Before(before) || x.Thread.ID != thread || x.Thread.Agent != "support" || x.Thread.User != "ada" ||
		x.Thread.CreatedAt < before.UnixMicro() || len(x.Messages) != 12 || *x.Messages[0].Content != texts[0] || *x.Messages[11].Content != texts[11] {
		t.Errorf("export: %+v", x)
	}
	if status, body := w.get("/threads/" + thread + "/files"); status != 200 || !strings.HasPrefix(body, `{"files":[{`) || !strings.Contains(body, `"/notes"`) {
		t.Errorf("files: %d %s", status, body)
	}
}

// An export reads its messages page by page, and has each once.
func TestExport_SeveralPages(t *testing.T) {
	w := newWorld(t)
	thread := w.thread()
	const n = 1101
	var adds []events.SubCommand
	for range n {
		add, err := client.Sub("item.create", events.CreateItem{Item: events.UserText("x")})
		if err != nil {
			t.Fatal(err)
		}
		if adds = append(adds, add); len(adds) == 100 {
			w.commit(thread, adds)
			adds = nil
		}
	}
	if len(adds) > 0 {
		w.commit(thread, adds)
	}
	var list events.MessageList // SA-165: 50 of them, the newest first
	if status, body := w.get("/threads/" + thread + "/messages"); status != 200 || json.Unmarshal([]byte(body), &list) != nil || len(list.Messages) != 50 || list.Total != n || !list.HasMore {
		t.Errorf("messages: %d, %d of %d", status, len(list.Messages), list.Total)
	}
	status, body := w.get("/threads/" + thread + "/export")
	var exported struct{ Messages []events.ThreadMessage }
	if err := json.Unmarshal([]byte(body), &exported); err != nil || status != 200 {
		t.Fatalf("%d: %v", status, err)
	}
	seen := map[string]bool{}
	for _, m := range exported.Messages {
		seen[m.ID] = true
	}
	if len(seen) != n || len(exported.Messages) != n {
		t.Errorf("%d messages, %d different ones", len(exported.Messages), len(seen))
	}
}

func (w *world) commit(thread string, commands []events.SubCommand) {
	w.t.Helper()
	if _, err := w.client("acme").Commit(w.t.Context(), thread, commands); err != nil {
		w.t.Fatal(err)
	}
}

// SA-157, SA-158, SA-159, SA-161: a program's own endpoint gets the request and the thread's state, which
// has no execution and belongs to the request's tenant.
func TestDefine_ReceivesRequestAndState(t *testing.T) {
	w := newWorld(t)
	thread := w.thread("hello")
	w.server.Must(w.endpoints.Add("note", api.DefineThreadEndpoint(func(rw http.ResponseWriter, r *http.Request, state *client.ThreadState) error {
		if state.Execution() != nil {
			return errors.New("there is an execution")
		}
		text := r.URL.Query().Get("text")
		if _, err := state.InjectMessage(r.Context(), events.AddMessage{Role: events.FromUser, Content: &text}); err != nil {
			return err
		}
		list, err := state.GetMessages(r.Context(), events.GetMessagesOptions{})
		if err != nil {
			return err
		}
		rw.WriteHeader(http.StatusCreated)
		_, err = io.WriteString(rw, state.ThreadID()+" "+*list.Messages[0].Content)
		return err
	})))
	status, _, body := w.do(http.MethodPost, "acme", "/threads/"+thread+"/note?text=hi")
	if status != http.StatusCreated || body != thread+" hi" {
		t.Errorf("%d %s", status, body)
	}
	doc, err := client.Read(t.Context(), w.client("acme"), events.ListEvents{ThreadID: thread})
	if err != nil {
		t.Fatal(err)
	}
	if last := string(doc.Events[len(doc.Events)-1]); !strings.Contains(last, `"actor":"desk"`) {
		t.Errorf("who wrote: %s", last)
	}
}

// SA-136: a program's endpoint streams a file of its thread to the answer, chunk by chunk; an
// absent file is a 404 with the body "Not Found".
func TestDefine_StreamsAFile(t *testing.T) {
	w := newWorld(t)
	thread := w.thread()
	w.server.Must(w.endpoints.Add("download", api.DefineThreadEndpoint(func(rw http.ResponseWriter, r *http.Request, state *client.ThreadState) error {
		stream, err := state.ReadFileStream(r.Context(), r.URL.Query().Get("path"))
		if err != nil {
			return err
		}
		if stream == nil {
			rw.WriteHeader(http.StatusNotFound)
			_, err := io.WriteString(rw, "Not Found")
			return err
		}
		rw.Header().Set("Content-Type", "application/octet-stream")
		for chunk, err := range stream {
			if err != nil {
				return err
			}
			if _, err := rw.Write(chunk.Data); err != nil {
				return err
			}
			rw.(http.Flusher).Flush()
		}
		return nil
	})))
	content := strings.Repeat("0123456789abcdef", 40_000) // five chunks
	state, err := w.client("acme").Thread(t.Context(), thread)
	w.server.Must(err)
	_, err = state.WriteFile(t.Context(), "/uploads/large-file.bin", []byte(content), "application/octet-stream", client.WriteFileOptions{})
	w.server.Must(err)
	status, header, body := w.do(http.MethodGet, "acme", "/threads/"+thread+"/download?path=/uploads/large-file.bin")
	if status != http.StatusOK || header.Get("Content-Type") != "application/octet-stream" || body != content {
		t.Errorf("%d, %s, %d bytes", status, header.Get("Content-Type"), len(body))
	}
	if status, body := w.get("/threads/" + thread + "/download?path=/uploads/none.bin"); status != http.StatusNotFound || body != "Not Found" {
		t.Errorf("absent: %d %q", status, body)
	}
}

// SA-160: an endpoint that writes nothing is a 500. An error before an answer is the answer;
// after its beginning it ends the connection.
func TestDefine_AnswersThatFail(t *testing.T) {
	w := newWorld(t)
	thread := w.thread()
	for name, f := range map[string]func(http.ResponseWriter, *http.Request, *client.ThreadState) error{
		"silent": func(http.ResponseWriter, *http.Request, *client.ThreadState) error { return nil },
		"refuses": func(http.ResponseWriter, *http.Request, *client.ThreadState) error {
			return events.Missing("order", "42")
		},
		"fails":  func(http.ResponseWriter, *http.Request, *client.ThreadState) error { return errors.New("secret") },
		"panics": func(http.ResponseWriter, *http.Request, *client.ThreadState) error { panic("secret") },
		"half": func(rw http.ResponseWriter, _ *http.Request, _ *client.ThreadState) error {
			_, _ = io.WriteString(rw, strings.Repeat("x", 1<<16))
			return errors.New("broken")
		},
	} {
		w.server.Must(w.endpoints.Add(name, api.DefineThreadEndpoint(f)))
	}
	if status, body := w.get("/threads/" + thread + "/silent"); status != 500 || body != `{"error":"The endpoint wrote no answer"}` {
		t.Errorf("silent: %d %s", status, body)
	}
	if status, body := w.get("/threads/" + thread + "/refuses"); status != 404 || !strings.Contains(body, "order not found: 42") {
		t.Errorf("refuses: %d %s", status, body)
	}
	for _, name := range []string{"fails", "panics"} { // what they did before is not known
		if status, body := w.get("/threads/" + thread + "/" + name); status != 500 || body != `{"error":"The endpoint failed"}` {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if log := w.log.String(); strings.Count(log, "secret") != 2 || !strings.Contains(log, "endpoint_test.go") {
		t.Errorf("the log: %s", log)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/threads/"+thread+"/half", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(edge.HeaderTenant, "acme")
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looks whole")
	}
	alone := httptest.NewRecorder()
	api.DefineThreadEndpoint(nil).ServeHTTP(alone, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/elsewhere", nil))
	if alone.Code != 500 || !strings.Contains(alone.Body.String(), "/threads/{threadId}/{endpoint}") {
		t.Errorf("elsewhere: %d %s", alone.Code, alone.Body)
	}
}

func TestRegistry_Refusals(t *testing.T) {
	g := api.NewEndpoints()
	ok := http.NotFoundHandler()
	for name, c := range map[string]struct {
		endpoint string
		handler  http.Handler
		code     events.Code
	}{
		"a slash":    {"a/b", ok, events.InvalidRequest},
		"dots":       {"..", ok, events.InvalidRequest},
		"nothing":    {"", ok, events.InvalidRequest},
		"no handler": {"a", nil, events.InvalidRequest},
		"taken":      {"summary", ok, events.AlreadyExists},
	} {
		if err := g.Add(c.endpoint, c.handler); !errors.Is(err, &events.Error{Code: c.code}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := g.Add("a", ok); err != nil {
		t.Error(err)
	}
}
