package openresponses_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Agents and models that are defined are models, and found by their names; an agent is meant
// where a model has the same name. A reactor that is served, and not defined, is one at a desk.
func TestModels_AgentsModelsAndReactors(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.s.Must(w.s.Reactor("bare", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		return skein.Answer("bare"), nil
	}))
	w.define("model", `{"name":"both","model":"test-1","reactor":"test"}`, "agent", `{"name":"both","type":"ai_human","reactor":"bare"}`)
	list := w.must("GET", "/v1/models", "")
	ids := map[any]int{}
	for _, m := range list["data"].([]any) {
		ids[m.(object)["id"]]++
		if m.(object)["object"] != "model" {
			t.Errorf("%v", m)
		}
	}
	if want := map[any]int{"triage": 1, "m": 1, "both": 1}; !reflect.DeepEqual(ids, want) || list["object"] != "list" {
		t.Errorf("%v", list)
	}
	for name, says := range map[string]string{"both": "bare", "bare": "bare", "m": "Hello, you.", "triage": "Hello, you."} {
		if got := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"x"}`, name)); texts(got["output"]) != says || got["model"] != name {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := w.must("GET", "/v1/models/both", ""); got["id"] != "both" {
		t.Errorf("%v", got)
	}
	if status, e := w.do("GET", "/v1/models/nobody", ""); status != http.StatusNotFound || e["error"].(object)["code"] == nil {
		t.Errorf("%d %v", status, e)
	}
}

// A client that leaves cancels nothing: neither one that waits for JSON, nor a stream, nor a
// socket. Only cancel does.
func TestCreate_DisconnectCancelsNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	begun, release := w.model.waits()
	for _, stream := range []string{"false", "true"} {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/responses", strings.NewReader(`{"model":"triage","input":"x","stream":`+stream+`}`))
		w.s.Must(err)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if res, err := http.DefaultClient.Do(req); err == nil {
				<-ctx.Done()
				_ = res.Body.Close()
			}
		}()
		<-begun
		leave()
		<-gone
	}
	l := w.connect()
	l.write(`{"type":"response.create","model":"triage","input":"x"}`)
	<-begun
	w.s.Must(l.conn.CloseNow())
	close(release)
	w.s.WaitIdle()
	fresh, err := w.c.UpToDate(t.Context())
	w.s.Must(err)
	runs, err := client.Read(t.Context(), fresh, events.ListRuns{})
	w.s.Must(err)
	if len(runs.Runs) != 3 {
		t.Fatalf("%d runs", len(runs.Runs))
	}
	for _, x := range runs.Runs {
		id := "resp_" + strings.TrimPrefix(x.ExecutionID, events.ExecutionPrefix)
		if got := w.must("GET", "/v1/responses/"+id, ""); got["status"] != "completed" || texts(got["output"]) != "Done." {
			t.Errorf("%v", got)
		}
	}
}

// A response that is not stored is not found on another connection from its start; its own
// request streams it.
func TestTemporary_NotFoundWhileItRuns(t *testing.T) {
	t.Parallel()
	w := start(t)
	release := make(chan struct{})
	w.model.answers(func(a *answer, _ map[string]any) {
		select {
		case <-release:
		case <-a.r.Context().Done():
		}
		a.says("Done.")
		a.ends("response.completed", "")
	})
	l := w.connect()
	l.write(`{"type":"response.create","model":"triage","input":"x","store":false}`)
	first := l.read()
	id := first["response"].(object)["id"]
	for _, ask := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"DELETE", ""}, {"POST", "/cancel"}, {"GET", "/input_items"}} {
		if status, e := w.do(ask[0], fmt.Sprintf("/v1/responses/%v%s", id, ask[1]), ""); status != http.StatusNotFound || e["error"].(object)["code"] != "not_found" {
			t.Errorf("%s %s: %d %v", ask[0], ask[1], status, e)
		}
	}
	close(release)
	for {
		if e := l.read(); e["type"] == "response.completed" {
			return
		}
	}
}

// A conversation is named by its id, by that of its thread, and by a thread's key.
func TestConversation_Names(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := w.must("POST", "/v1/conversations", `{}`)["id"].(string)
	number := strings.TrimPrefix(id, "conv_")
	thread := fmt.Sprintf("T-%s-%s-%s-%s-%s", number[:8], number[8:12], number[12:16], number[16:20], number[20:])
	keyed, err := w.c.Send(t.Context(), "", events.CreateThread{Key: "support/42"})
	w.s.Must(err)
	for _, name := range []string{id, thread} {
		if got := w.must("GET", "/v1/conversations/"+name, ""); got["id"] != id {
			t.Errorf("%s: %v", name, got)
		}
		for _, form := range []string{`%q`, `{"id":%q}`} {
			got := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"x","conversation":`+form+`}`, name))
			if got["conversation"].(object)["id"] != id {
				t.Errorf("%s: %v", name, got["conversation"])
			}
		}
	}
	byKey := w.must("GET", "/v1/conversations/key:support%2F42", "")
	if byKey["id"] != "conv_"+strings.ReplaceAll(strings.TrimPrefix(keyed.ThreadID, "T-"), "-", "") {
		t.Errorf("%v, and the thread is %s", byKey, keyed.ThreadID)
	}
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"x","conversation":"key:support/42"}`)
	if got["conversation"].(object)["id"] != byKey["id"] {
		t.Errorf("%v", got["conversation"])
	}
	for _, name := range []string{"conv_0", "conv_" + strings.Repeat("0", 32), "key:nobody", "T-nobody"} {
		if status, _ := w.do("GET", "/v1/conversations/"+name, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", name, status)
		}
		if status, e := w.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"x","conversation":%q}`, name)); status != http.StatusNotFound {
			t.Errorf("%s: %d %v", name, status, e)
		}
	}
}

// What one request has acknowledged the next one shows, without a header: every read follows
// every write of the same edge.
func TestReads_ShowWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := w.must("POST", "/v1/conversations", `{}`)["id"].(string)
	for n := range 20 {
		added := w.must("POST", "/v1/conversations/"+id+"/items", fmt.Sprintf(`{"items":[{"role":"user","content":"%d"}]}`, n))
		item := added["data"].([]any)[0].(object)["id"]
		if list := w.must("GET", "/v1/conversations/"+id+"/items?limit=1", ""); list["first_id"] != item {
			t.Fatalf("after %d items the list begins with %v", n+1, list)
		}
		w.must("POST", "/v1/conversations/"+id, fmt.Sprintf(`{"metadata":{"n":"%d"}}`, n))
		if got := w.must("GET", "/v1/conversations/"+id, ""); fmt.Sprint(got["metadata"]) != fmt.Sprintf("map[n:%d]", n) {
			t.Fatalf("after %d: %v", n, got)
		}
	}
}

// The input of a response has pages, newest first unless the request says otherwise.
func TestInputItems_Pages(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},{"role":"user","content":"3"},{"role":"assistant","content":"4"},{"role":"user","content":"5"}]}`)
	path := fmt.Sprintf("/v1/responses/%v/input_items", got["id"])
	for order, want := range map[string]string{"": "5 4 3 2 1", "order=desc": "5 4 3 2 1", "order=asc": "1 2 3 4 5"} {
		var said []string
		for after, more := "", true; more; {
			page := w.must("GET", path+"?limit=2&"+order+after, "")
			list := page["data"].([]any)
			said = append(said, texts(page["data"]))
			if len(list) == 0 || len(list) > 2 || page["object"] != "list" || page["first_id"] != list[0].(object)["id"] || page["last_id"] != list[len(list)-1].(object)["id"] {
				t.Fatalf("%s: %v", order, page)
			}
			after, more = fmt.Sprintf("&after=%v", page["last_id"]), page["has_more"] == true
		}
		if got := strings.Join(said, " "); got != want || len(said) != 3 {
			t.Errorf("%s: %v", order, said)
		}
	}
	for _, wrong := range []string{"limit=0", "limit=101", "limit=x", "order=up", "after=nobody"} {
		name, _, _ := strings.Cut(wrong, "=")
		if status, e := w.do("GET", path+"?"+wrong, ""); status != http.StatusBadRequest || e["error"].(object)["param"] != name {
			t.Errorf("%s: %d %v", wrong, status, e)
		}
	}
}

// A cancel of a response that has ended changes nothing.
func TestCancel_Ended(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"x"}`)
	version := w.version()
	for range 2 {
		if again := w.must("POST", fmt.Sprintf("/v1/responses/%v/cancel", got["id"]), ""); !reflect.DeepEqual(again, got) {
			t.Errorf("%v, and was %v", again, got)
		}
	}
	if now := w.version(); now != version {
		t.Errorf("the thread's version %d became %d", version, now)
	}
}

// version returns the version of the only thread.
func (w *world) version() int64 {
	w.t.Helper()
	fresh, err := w.c.UpToDate(w.t.Context())
	w.s.Must(err)
	list, err := client.Read(w.t.Context(), fresh, events.ListThreads{})
	w.s.Must(err)
	if len(list.Threads) != 1 {
		w.t.Fatalf("%d threads", len(list.Threads))
	}
	return list.Threads[0].Version
}
