package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

var uuids = regexp.MustCompile(`[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|"seq":\d+|"(created_at|completed_at|version|size)":\d+|\d{4}-\d\d-\d\dT[\d:.]+Z`)

// Ids of another tenant in bodies and in parameters are as unknown as those that nothing has.
func TestHandler_OtherTenantsInBodiesAndParameters(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{"globex": {Tenant: "globex", Subject: "key:g"}, "acme": {Tenant: "acme", Subject: "key:a"}})
	s.teller()
	real, mine := s.made("acme", "ann", "order42"), s.made("globex", "bob", "order43")
	if status, text := s.ask("globex", "PUT", "/api/definitions/agent/teller", `{"name":"teller","type":"ai_human","reactor":"teller"}`); status >= 300 {
		t.Fatalf("an agent: %d %s", status, text)
	}
	if status, text := s.ask("globex", "POST", "/v1/responses", `{"model":"teller","input":"x","previous_response_id":"resp_`+mine.execution[strings.Index(mine.execution, "_")+1:]+`"}`); status != http.StatusOK {
		t.Fatalf("a response of its own is continued: %d %s", status, text)
	}
	tried := 0
	alike := func(method, path, body string) {
		t.Helper()
		tried++
		var got [2]string
		for i, other := range []ids{real, real.unknown()} {
			bare := func(id string) string { return id[strings.IndexAny(id, "-_")+1:] }
			fill := strings.NewReplacer("MINE", mine.thread, "OWN-ITEM", mine.item, "THREAD", other.thread, "KEY", other.key, "ITEM", other.item, "EXECUTION", other.execution,
				"CONVERSATION", "conv_"+strings.ReplaceAll(bare(other.thread), "-", ""), "RESPONSE", "resp_"+bare(other.execution))
			status, text := s.ask("globex", method, fill.Replace(path), fill.Replace(body))
			if strings.Contains(text, `"ann"`) || strings.Contains(text, real.item) && !strings.Contains(fill.Replace(path+body), real.item) {
				t.Errorf("%s %s %s: %d %.400s", method, path, body, status, text)
			}
			got[i] = fmt.Sprint(status) + " " + uuids.ReplaceAllString(strings.ReplaceAll(text, other.key, "KEY"), "ID")
		}
		if got[0] != got[1] {
			t.Errorf("%s %s %s:\n%.500s\nand of what does not exist:\n%.500s", method, path, body, got[0], got[1])
		}
	}
	for _, row := range events.Queries() {
		for _, body := range []string{`{"threadId":"THREAD"}`, `{"threadId":"key:KEY"}`, `{"threadId":"MINE","itemId":"ITEM"}`, `{"threadId":"MINE","executionId":"EXECUTION"}`, `{"executionId":"EXECUTION"}`, `{"cursor":"THREAD"}`} {
			alike("POST", "/api/queries/"+row.Name, body)
		}
	}
	for _, row := range events.Commands() {
		for _, thread := range []string{"THREAD", "key:KEY"} {
			alike("POST", "/api/commands/"+row.Name, `{"threadId":"`+thread+`","data":{}}`)
		}
		for _, field := range []string{"itemId", "messageId", "executionId", "parentItemId", "reactionItemId", "toThreadId", "targetThreadId", "childId", "callId", "effectId", "contextId"} {
			alike("POST", "/api/commands/"+row.Name, `{"threadId":"MINE","data":{"`+field+`":"ITEM"}}`)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/responses", `{"model":"teller","input":"x","previous_response_id":"RESPONSE"}`},
		{"POST", "/v1/responses", `{"model":"teller","input":"x","conversation":"CONVERSATION"}`},
		{"POST", "/v1/responses", `{"model":"teller","input":"x","conversation":{"id":"THREAD"}}`},
		{"POST", "/v1/responses", `{"model":"teller","input":[{"role":"user","content":[{"type":"input_file","file_id":"ITEM"}]}]}`},
		{"POST", "/v1/responses", `{"model":"teller","input":[{"type":"item_reference","id":"ITEM"}]}`},
		{"POST", "/v1/responses/compact", `{"model":"teller","previous_response_id":"RESPONSE"}`},
		{"POST", "/v1/responses/input_tokens", `{"model":"teller","input":"x","previous_response_id":"RESPONSE"}`},
		{"GET", "/v1/conversations/MINE/items?after=ITEM", ""}, {"GET", "/v1/conversations/MINE/items/ITEM", ""},
		{"POST", "/api/threads/MINE/fork", `{"atItemId":"ITEM"}`}, {"POST", "/api/threads/MINE/mention", `{"threadId":"THREAD","agentId":"teller"}`},
		{"POST", "/api/threads/MINE/truncate", `{"itemId":"ITEM"}`}, {"PATCH", "/api/threads/MINE/messages/ITEM", `{"content":"x"}`}, {"DELETE", "/api/threads/MINE/messages/ITEM", ""},
		{"GET", "/api/threads/MINE/items/ITEM", ""}, {"GET", "/api/threads/MINE/executions/EXECUTION", ""}, {"GET", "/api/threads/MINE/steps?executionId=EXECUTION", ""},
		{"GET", "/api/threads/MINE/parts?stepId=ITEM", ""}, {"POST", "/api/threads/MINE/approvals/ITEM", `{"grant":true}`}, {"GET", "/api/threads?cursor=THREAD", ""},
	} {
		alike(c.method, c.path, c.body)
	}
	if tried < 500 {
		t.Errorf("only %d requests were tried", tried)
	}
}

// What one tenant was handed, another cannot use: cursors, positions and keys of requests.
func TestHandler_OtherTenantsCursorsAndKeys(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{"globex": {Tenant: "globex", Subject: "key:g"}, "acme": {Tenant: "acme", Subject: "key:a"}})
	s.teller()
	of := map[string][]string{}
	for n := range 3 {
		for _, tenant := range []string{"acme", "globex"} {
			made := s.made(tenant, "user-"+tenant, fmt.Sprint(tenant, n))
			of[tenant] = append(of[tenant], made.thread, made.item, made.execution)
		}
	}
	shows := func(what, text string) {
		t.Helper()
		if i := slices.IndexFunc(append(of["acme"], "user-acme"), func(id string) bool { return strings.Contains(text, id) }); i >= 0 {
			t.Errorf("%s shows what is another's: %.500s", what, text)
		}
	}
	cursors := regexp.MustCompile(`"(?:nextCursor|cursor|next)":"([^"]+)"`)
	for _, path := range []string{"/api/threads?limit=1", "/api/threads/" + of["acme"][0] + "/items?limit=1", "/api/threads/" + of["acme"][0] + "/messages?limit=1"} {
		_, page := s.ask("acme", "GET", path, "")
		found := cursors.FindStringSubmatch(page)
		if found == nil {
			t.Errorf("%s has no next page: %.300s", path, page)
			continue
		}
		for _, own := range []string{path, strings.ReplaceAll(path, of["acme"][0], of["globex"][0])} {
			status, text := s.ask("globex", "GET", own+"&cursor="+url.QueryEscape(found[1]), "")
			shows(own+" with another's cursor", strings.ReplaceAll(text, of["acme"][0], ""))
			if own != "/api/threads?limit=1" && own == path && status != http.StatusNotFound {
				t.Errorf("%s: %d", own, status)
			}
		}
	}
	for _, path := range []string{"/api/threads", "/v1/conversations"} {
		var seen []string
		for _, who := range []string{"acme", "globex"} {
			status, text := s.ask(who, "POST", path, "{}", "Idempotency-Key", "the-same-key")
			if status != http.StatusOK && status != http.StatusCreated {
				t.Fatalf("%s as %s: %d %.300s", path, who, status, text)
			}
			seen = append(seen, regexp.MustCompile(`"(?:threadId|id)":"([^"]+)"`).FindStringSubmatch(text)[1])
		}
		if seen[0] == seen[1] {
			t.Errorf("%s: one key of two tenants has one answer, %s", path, seen[0])
		}
		if status, _ := s.ask("globex", "GET", path+"/"+seen[0], ""); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			t.Errorf("%s/%s as another: %d", path, seen[0], status)
		}
	}
}

// A capability that a key lacks is missing on every route: what a key may do that reads only
// changes nothing, and one that may approve or define only reads nothing.
func TestHandler_CapabilitiesOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{})
	s.teller()
	made := s.made("acme", "ann", "order42")
	for _, c := range edge.Capabilities() {
		s.people[string(c)] = edge.Principal{Tenant: "acme", Subject: "key:" + string(c), Can: []edge.Capability{c}}
	}
	s.people["all"] = edge.Principal{Tenant: "acme", Subject: "key:all"}
	before := s.version(made.thread)
	tried := 0
	for _, pattern := range s.handler.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		if strings.HasPrefix(path, "/console") || strings.HasPrefix(path, "/healthz") || strings.Contains(path, "{noun}") || strings.HasSuffix(path, "/socket") || !strings.Contains(path, "{") {
			continue
		}
		if strings.HasPrefix(path, "/threads/") && !strings.Contains(path, "{") {
			continue
		}
		for _, values := range made.forms() {
			filled := 0
			target := variable.ReplaceAllStringFunc(path, func(string) string {
				filled++
				return values[min(filled, 2)-1]
			})
			tried++
			for _, who := range []string{"approve", "define"} {
				if method != "GET" || strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/chunks") {
					continue
				}
				if status, text := s.ask(who, method, target, ""); strings.Contains(text, "secret") || status == http.StatusOK {
					t.Errorf("%s, %s %s: %d %.300s", who, method, target, status, text)
				}
			}
			if idle := strings.HasSuffix(path, "/stop") || strings.HasSuffix(path, "/cancel"); method != "GET" && method != "HEAD" && !idle { // nothing runs
				if status, text := s.ask("read", method, target, "{}"); status < 400 && status != http.StatusNoContent && !strings.Contains(text, `"error":{"code":-32`) { // JSON-RPC refuses with 200
					t.Errorf("read, %s %s: %d %.300s", method, target, status, text)
				}
			}
		}
	}
	for _, row := range events.Commands() {
		tried++
		status, text := s.ask("read", "POST", "/api/commands/"+row.Name, `{"threadId":"`+made.thread+`","data":{}}`)
		if status != http.StatusForbidden {
			t.Errorf("read, %s: %d %.200s", row.Name, status, text)
		}
	}
	for _, row := range events.Queries() {
		for _, who := range []string{"write", "approve", "define"} {
			tried++
			if status, text := s.ask(who, "POST", "/api/queries/"+row.Name, `{"threadId":"`+made.thread+`"}`); status != http.StatusForbidden && status != http.StatusBadRequest || strings.Contains(text, "secret") {
				t.Errorf("%s, %s: %d %.200s", who, row.Name, status, text)
			}
		}
	}
	if after := s.version(made.thread); after != before {
		t.Errorf("the thread has changed: %s, and was %s", after, before)
	}
	if tried < 400 {
		t.Errorf("only %d requests were tried", tried)
	}
}

// version returns the version of a thread.
func (s *stage) version(thread string) string {
	s.t.Helper()
	_, text := s.ask("all", "GET", "/api/threads/"+thread, "")
	return regexp.MustCompile(`"version":\d+`).FindString(text)
}
