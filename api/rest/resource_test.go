package rest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestThreads_AreResources(t *testing.T) {
	t.Parallel()
	s := start(t)
	made := s.ask("POST", "/api/threads", `{"key":"a/b","title":"First","userId":"ada"}`).want(http.StatusCreated)
	thread := made.header.Get("Location")
	if thread != "/api/threads/"+made.text("threadId") {
		t.Errorf("Location: %q", thread)
	}
	seq := made.text("seq")
	fresh := []string{"Skein-Min-Seq", seq}
	byKey := s.ask("GET", "/api/threads/"+url.PathEscape("key:a/b"), "", fresh...).want(http.StatusOK)
	if byKey.text("id") != made.text("threadId") {
		t.Errorf("by key: %s", byKey.body)
	}
	changed := s.ask("PATCH", thread, `{"title":"Second"}`).want(http.StatusOK)
	if now := s.ask("GET", thread, "", "Skein-Min-Seq", changed.text("seq")).want(http.StatusOK); now.text("title") != "Second" {
		t.Errorf("after the change: %s", now.body)
	}
	if then := s.ask("GET", thread+"?at="+made.text("version"), "").want(http.StatusOK); then.text("title") != "First" {
		t.Errorf("as it was: %s", then.body)
	}
	moment := s.ask("GET", thread, "").text("createdAt")
	if then := s.ask("GET", thread+"?at="+moment, "").want(http.StatusOK); then.text("title") == "" {
		t.Errorf("as it was at %s: %s", moment, then.body)
	}
	if list := s.ask("GET", "/api/threads?userId=ada&archived=false&keyPrefix=a/&status=open&minSeq="+changed.text("seq"), "").want(http.StatusOK); !strings.Contains(string(list.body), "Second") {
		t.Errorf("the list: %s", list.body)
	}
	if list := s.ask("GET", "/api/threads?userId=bob", "").want(http.StatusOK); string(list.body) != `{"threads":[]}` {
		t.Errorf("of bob: %s", list.body)
	}
	gone := s.ask("DELETE", thread+"?purge=true", "").want(http.StatusOK)
	s.ask("GET", thread, "", "Skein-Min-Seq", gone.text("seq")).problem(http.StatusNotFound, "not_found", "")
}

// A page ends with the cursor of the next one, until everything was seen once.
func TestLists_HavePages(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	var last answer
	for i := range 7 {
		last = s.ask("POST", thread+"/messages", fmt.Sprintf(`{"role":"user","content":"message %d"}`, i)).want(http.StatusCreated)
	}
	var seen []string
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				ID    string
				Index int
			}
			NextCursor string
		}
		s.ask("GET", thread+"/items?limit=3&order=asc&cursor="+url.QueryEscape(cursor), "", "Skein-Min-Seq", last.text("seq")).want(http.StatusOK).to(&page)
		for _, item := range page.Items {
			seen = append(seen, fmt.Sprint(item.Index))
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if got := strings.Join(seen, " "); got != "0 1 2 3 4 5 6" {
		t.Errorf("the pages have %s", got)
	}
	if then := s.ask("GET", thread+"/items?at=4", "").want(http.StatusOK); then.text("total") == "7" {
		t.Errorf("at version 4: %s", then.body)
	}
}

func TestItemsAndMessages(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	item := s.ask("POST", thread+"/items", hello).want(http.StatusCreated)
	at := item.header.Get("Location")
	if at != thread+"/items/"+item.text("result.itemId") {
		t.Errorf("Location: %q", at)
	}
	fresh := func(a answer) []string { return []string{"Skein-Min-Seq", a.text("seq")} }
	if got := s.ask("GET", at, "", fresh(item)...).want(http.StatusOK); got.text("id") != item.text("result.itemId") {
		t.Errorf("the item: %s", got.body)
	}
	message := s.ask("POST", thread+"/messages", `{"role":"user","content":"one"}`, "Idempotency-Key", "m-1").want(http.StatusCreated)
	if again := s.ask("POST", thread+"/messages", `{"role":"user","content":"one"}`, "Idempotency-Key", "m-1").want(http.StatusCreated); string(again.body) != string(message.body) {
		t.Errorf("a repeat: %s, first %s", again.body, message.body)
	}
	at = message.header.Get("Location")
	changed := s.ask("PATCH", at, `{"content":"two"}`).want(http.StatusOK)
	if got := s.ask("GET", at, "", fresh(changed)...).want(http.StatusOK); got.text("content") != "two" {
		t.Errorf("the message: %s", got.body)
	}
	s.ask("PATCH", at, `{"messageId":"itm_x","content":"three"}`).problem(http.StatusBadRequest, "invalid_request", "messageId")
	gone := s.ask("DELETE", at, "").want(http.StatusOK)
	if got := s.ask("GET", at, "", fresh(gone)...).want(http.StatusOK); string(got.body) != "null" {
		t.Errorf("the deleted message: %s", got.body)
	}
	s.ask("POST", thread+"/items", `{"item":{"type":"sonnet"}}`).problem(http.StatusBadRequest, "invalid_request", "item/type")
}

// Each list of the contract is there, and takes the fields of its query, and no others.
func TestLists_TakeFieldsOfTheirQueries(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	for path, body := range map[string]string{
		"items": "items", "messages": "messages", "executions": "executions", "contexts": "contexts", "effects": "effects", "logs": "logs",
		"files": "entries", "relationships": "relationships", "queue": "queued", "shares": "shares", "state": "values",
		"steps?executionId=exe_1": "steps", "parts?stepId=stp_1": "parts",
	} {
		a := s.ask("GET", thread+"/"+path, "")
		if a.status == http.StatusOK && !strings.Contains(string(a.body), `"`+body+`":`) || a.status != http.StatusOK && a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/api/threads", "/api/agents", "/api/definitions", "/api/runs", "/api/approvals", "/api/effects"} {
		s.ask("GET", path, "").want(http.StatusOK)
		if m := s.ask("GET", path+"?colour=red", "").problem(http.StatusBadRequest, "invalid_request", "colour"); !strings.Contains(m, "known are") {
			t.Errorf("%s: %q", path, m)
		}
	}
	for query, param := range map[string]string{
		"threadId=T-1": "threadId", "limit=ten": "limit", "limit=1&limit=2": "limit", "limit=0": "limit", "order=up": "order", "at=yesterday": "at/time",
		"at=0": "at/version", "minSeq=-1": "minSeq", "type=sonnet": "type", "=x": "",
	} {
		s.ask("GET", thread+"/items?"+query, "").problem(http.StatusBadRequest, "invalid_request", param)
	}
	s.ask("GET", thread+"/items?a=%zz", "").problem(http.StatusBadRequest, "invalid_request", "")
	s.ask("GET", "/api/threads?archived=maybe", "").problem(http.StatusBadRequest, "invalid_request", "archived")
	s.ask("GET", thread, "", "Skein-Min-Seq", "x").problem(http.StatusBadRequest, "invalid_request", "Skein-Min-Seq")
	s.ask("POST", "/api/threads?key=x", `{}`).problem(http.StatusBadRequest, "invalid_request", "key")
}

func TestRelations(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread, other := s.thread(), s.thread()
	s.ask("POST", thread+"/messages", `{"role":"user","content":"one"}`).want(http.StatusCreated)
	s.ask("POST", thread+"/messages", `{"role":"user","content":"two"}`).want(http.StatusCreated)
	fork := s.ask("POST", thread+"/fork", `{"messageIndex":0,"title":"Branch"}`).want(http.StatusCreated)
	if got := fork.header.Get("Location"); got != "/api/threads/"+fork.text("result.childId") {
		t.Errorf("Location: %q", got)
	}
	s.ask("GET", fork.header.Get("Location"), "", "Skein-Min-Seq", fork.text("seq")).want(http.StatusOK)
	s.ask("POST", thread+"/handoff", `{"summary":"Go on."}`).want(http.StatusCreated)
	mention := s.ask("POST", thread+"/mention", `{"mentionedId":"`+id(other)+`"}`).want(http.StatusOK)
	if list := s.ask("GET", thread+"/relationships?type=mention", "", "Skein-Min-Seq", mention.text("seq")).want(http.StatusOK); !strings.Contains(string(list.body), id(other)) {
		t.Errorf("relationships: %s", list.body)
	}
	s.ask("POST", thread+"/truncate", `{"messageIndex":0}`).want(http.StatusOK)
	s.ask("POST", thread+"/fork", `{"messageIndex":99}`).want(http.StatusBadRequest)
}

func TestDefinitions_AreResources(t *testing.T) {
	t.Parallel()
	s := start(t)
	agent := `{"type":"ai_human","model":"fast"}`
	s.ask("PUT", "/api/definitions/model/fast", `{"model":"gpt-5-mini"}`).want(http.StatusOK)
	put := s.ask("PUT", "/api/definitions/agent/team/triage", agent).want(http.StatusOK)
	fresh := []string{"Skein-Min-Seq", put.text("seq")}
	if got := s.ask("GET", "/api/definitions/agent/team/triage", "", fresh...).want(http.StatusOK); got.text("version") != "1" {
		t.Errorf("the definition: %s", got.body)
	}
	s.ask("GET", "/api/definitions/agent/team%2Ftriage?version=1", "", fresh...).want(http.StatusOK)
	if list := s.ask("GET", "/api/agents", "", fresh...).want(http.StatusOK); !strings.Contains(string(list.body), "team/triage") || strings.Contains(string(list.body), "fast\"}") && strings.Contains(string(list.body), `"kind":"model"`) {
		t.Errorf("agents: %s", list.body)
	}
	s.ask("GET", "/api/agents/team/triage", "", fresh...).want(http.StatusOK)
	s.ask("PUT", "/api/definitions/model/fast", `{"modle":"x"}`).problem(http.StatusBadRequest, "invalid_request", "modle")
	s.ask("PUT", "/api/definitions/poem/fast", `{}`).want(http.StatusBadRequest)
	gone := s.ask("DELETE", "/api/definitions/agent/team/triage", "").want(http.StatusOK)
	s.ask("GET", "/api/definitions/agent/team/triage", "", "Skein-Min-Seq", gone.text("seq")).problem(http.StatusNotFound, "not_found", "")
}

// What belongs to another tenant does not exist, in whichever place it is named.
func TestResources_OfOtherTenants(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.ask("POST", "/api/threads", `{"key":"secret"}`).want(http.StatusCreated).header.Get("Location")
	message := s.ask("POST", thread+"/messages", `{"role":"user","content":"one"}`).want(http.StatusCreated)
	put := s.ask("PUT", thread+"/files/a.txt", "content", "Content-Type", "text/plain").want(http.StatusCreated)
	s.ask("GET", thread, "", "Skein-Min-Seq", put.text("seq")).want(http.StatusOK)
	other := s.as("evil")
	own := other.thread()
	other.ask("GET", own+"?minVersion=2", "").want(http.StatusOK)
	item := message.text("result.itemId")
	for _, target := range []string{
		thread, thread + "/items", thread + "/items/" + item, thread + "/messages", thread + "/messages/" + item, thread + "/executions", thread + "/contexts",
		thread + "/effects", thread + "/logs", thread + "/files", thread + "/relationships", thread + "/queue", thread + "/events", thread + "/chunks",
		thread + "/files/a.txt", "/api/threads/key:secret", "/api/threads/key:secret/events", own + "/items/" + item, own + "/files/a.txt",
	} {
		for _, accept := range []string{"*/*", "application/json", "text/event-stream"} {
			if a := other.ask("GET", target, "", "Accept", accept); a.status != http.StatusNotFound {
				t.Errorf("GET %s (%s): %d %.300s", target, accept, a.status, a.body)
			}
		}
	}
	for _, c := range [][3]string{
		{"PATCH", thread, `{"title":"x"}`},
		{"DELETE", thread, ""},
		{"POST", thread + "/items", hello},
		{"POST", thread + "/messages", `{"role":"user","content":"x"}`},
		{"PATCH", thread + "/messages/" + item, `{"content":"x"}`},
		{"PATCH", own + "/messages/" + item, `{"content":"x"}`},
		{"DELETE", thread + "/messages/" + item, ""},
		{"POST", thread + "/react", `{"text":"x"}`},
		{"POST", thread + "/fork", `{"messageIndex":0}`},
		{"POST", own + "/mention", `{"mentionedId":"` + id(thread) + `"}`},
		{"PUT", thread + "/files/a.txt", "x"},
		{"DELETE", thread + "/files/a.txt", ""},
		{"POST", "/api/commands/item.create", `{"threadId":"` + id(thread) + `","data":` + hello + `}`},
		{"POST", "/api/queries/item.list", `{"threadId":"` + id(thread) + `"}`},
	} {
		if a := other.ask(c[0], c[1], c[2]); a.status != http.StatusNotFound {
			t.Errorf("%s %s: %d %.300s", c[0], c[1], a.status, a.body)
		}
	}
	if a := s.ask("GET", thread+"/messages/"+item, "", "Skein-Min-Seq", put.text("seq")); a.text("content") != "one" {
		t.Errorf("the message: %s", a.body)
	}
}

// Ids that are none are refused or not found, and never reach a subject.
func TestResources_HostileIDs(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, bad := range []string{
		"*", "%3E", "T-*", "..%2f..%2fhealthz", "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162%00", "key:", "key:%00", "key:%ff", "%20", strings.Repeat("9", 4000),
		"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162.x", "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162%0d%0aX-Y:%20z", "thrd_",
	} {
		for _, rest := range []string{"", "/items", "/events", "/chunks", "/files/a"} {
			if a := s.ask("GET", "/api/threads/"+bad+rest, ""); a.status != http.StatusBadRequest && a.status != http.StatusNotFound || a.header.Get("X-Y") != "" {
				t.Errorf("%s%s: %d %.300s", bad, rest, a.status, a.body)
			}
		}
		if a := s.ask("POST", "/api/threads/"+bad+"/items", hello); a.status != http.StatusBadRequest && a.status != http.StatusNotFound {
			t.Errorf("POST %s/items: %d %.300s", bad, a.status, a.body)
		}
	}
}
