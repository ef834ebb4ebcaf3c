package openresponses_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// shown returns what the model was shown in its last request.
func (m *model) shown() string {
	var out []string
	for _, i := range m.last()["input"].([]any) {
		item := i.(object)
		switch item["type"] {
		case "message":
			for _, p := range item["content"].([]any) {
				out = append(out, fmt.Sprintf("%v:%v", item["role"], p.(object)["text"]))
			}
		case "function_call":
			out = append(out, fmt.Sprintf("call %v %v", item["call_id"], item["arguments"]))
		case "function_call_output":
			out = append(out, fmt.Sprintf("output %v %v", item["call_id"], item["output"]))
		default:
			out = append(out, fmt.Sprint(item["type"]))
		}
	}
	return strings.Join(out, " | ")
}

// A response is continued in its thread while it is the last, and in a fork at that response
// when it is not: both branches are kept.
func TestPrevious_ContinuesOrForks(t *testing.T) {
	t.Parallel()
	w := start(t)
	n := 0
	w.model.answers(func(a *answer, _ map[string]any) {
		n++
		a.says(fmt.Sprintf("answer %d", n))
		a.ends("response.completed", "")
	})
	ask := func(previous any, text string) object {
		return w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":%q,"previous_response_id":%q}`, text, previous))
	}
	first := w.must("POST", "/v1/responses", `{"model":"triage","input":"one"}`)
	second := ask(first["id"], "two")
	if got := w.model.shown(); got != "user:one | assistant:answer 1 | user:two" {
		t.Errorf("%s", got)
	}
	branch := ask(first["id"], "another two")
	if got := w.model.shown(); got != "user:one | assistant:answer 1 | user:another two" {
		t.Errorf("%s", got)
	}
	ask(second["id"], "three")
	if got := w.model.shown(); got != "user:one | assistant:answer 1 | user:two | assistant:answer 2 | user:three" {
		t.Errorf("%s", got)
	}
	ask(branch["id"], "another three")
	if got := w.model.shown(); got != "user:one | assistant:answer 1 | user:another two | assistant:answer 3 | user:another three" {
		t.Errorf("%s", got)
	}
	if branch["previous_response_id"] != first["id"] {
		t.Errorf("%v", branch["previous_response_id"])
	}
	fresh, err := w.c.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	threads, err := client.Read(t.Context(), fresh, events.ListThreads{})
	if err != nil || len(threads.Threads) != 2 {
		t.Errorf("%d threads: %v", len(threads.Threads), err)
	}
	for _, r := range []object{first, second, branch} { // all are still what they were
		if got := w.must("GET", "/v1/responses/"+r["id"].(string), ""); !reflect.DeepEqual(got, r) {
			t.Errorf("%v\nand not\n%v", got, r)
		}
	}
}

// A call of a caller's tool ends the response; its output, in the next request, goes on.
func TestTools_OfTheCaller(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, asked map[string]any) {
		if items := asked["input"].([]any); items[len(items)-1].(object)["type"] == "function_call_output" {
			a.says("It rains.")
		} else {
			a.says("Let me look.")
			a.calls("call_1", "weather", `{"city":"Paris"}`)
		}
		a.ends("response.completed", "")
	})
	tools := `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	list := w.stream("POST", "/v1/responses", `{"model":"triage","input":"The weather?","stream":true,`+tools+`}`)
	first := list[len(list)-1]["response"].(object)
	call := first["output"].([]any)[1].(object)
	if first["status"] != "completed" || call["type"] != "function_call" || call["call_id"] != "call_1" || call["arguments"] != `{"city":"Paris"}` || call["name"] != "weather" || call["status"] != "completed" {
		t.Fatalf("%v", first["output"])
	}
	if got := kinds(list); !strings.Contains(got, "output_item.done output_item.added function_call_arguments.delta function_call_arguments.done output_item.done completed") {
		t.Errorf("%s", got)
	}
	wrong, told := w.do("POST", "/v1/responses", `{"model":"triage","previous_response_id":"`+first["id"].(string)+`","input":[{"type":"function_call_output","call_id":"call_2","output":"x"}]}`)
	if wrong != 400 || !strings.Contains(fmt.Sprint(told), "call_2") {
		t.Errorf("%d %v", wrong, told)
	}
	second := w.must("POST", "/v1/responses", `{"model":"triage","previous_response_id":"`+first["id"].(string)+`","input":[{"type":"function_call_output","call_id":"call_1","output":"rain"}],`+tools+`}`)
	if got := w.model.shown(); got != `user:The weather? | assistant:Let me look. | call call_1 {"city":"Paris"} | output call_1 rain` || texts(second["output"]) != "It rains." {
		t.Errorf("%s: %v", got, second["output"])
	}
	// The whole history in the input, as clients without a previous response send it, with a
	// reference to what is stored.
	whole := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":[{"role":"user","content":"The weather?"},{"type":"item_reference","id":%q},
		{"type":"function_call_output","call_id":"call_1","output":"rain"}],%s}`, call["id"], tools))
	if got := w.model.shown(); got != `user:The weather? | call call_1 {"city":"Paris"} | output call_1 rain` || texts(whole["output"]) != "It rains." {
		t.Errorf("%s: %v", got, whole["output"])
	}
}

// A tool that the server runs is not shown as a function_call, and as mcp_call to those who ask.
func TestTools_OfTheServer(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, asked map[string]any) {
		if len(asked["input"].([]any)) == 1 {
			a.says("I look.")
			a.calls("call_1", "read_thread", `{"threadId":"T-0"}`)
		} else {
			a.says("Done.")
		}
		a.ends("response.completed", "")
	})
	w.define("tool", `{"name":"read_thread","description":"Reads.","type":"go"}`, "agent", `{"name":"clerk","type":"ai_human","model":"m","tools":["read_thread"]}`)
	list := w.stream("POST", "/v1/responses", `{"model":"clerk","input":"hello","stream":true}`)
	got := list[len(list)-1]["response"].(object)
	if texts(got["output"]) != "I look. Done." || strings.Contains(fmt.Sprint(list), "call_1") {
		t.Errorf("%v: %s", texts(got["output"]), kinds(list))
	}
	list = w.stream("POST", "/v1/responses", `{"model":"clerk","input":"hello","stream":true,"include":["skein.server_tools"]}`)
	got = list[len(list)-1]["response"].(object)
	if texts(got["output"]) != "I look. (mcp_call) Done." {
		t.Fatalf("%v", got["output"])
	}
	call := got["output"].([]any)[1].(object)
	if call["name"] != "read_thread" || call["server_label"] != "skein" || call["arguments"] != `{"threadId":"T-0"}` || call["status"] != "failed" || call["output"] != nil {
		t.Errorf("%v", call)
	}
	if why, _ := call["error"].(string); why == "" || strings.HasPrefix(why, "Error: ") { // there is no such thread
		t.Errorf("the error of the call is %v", call["error"])
	}
	at := 0
	for _, e := range list {
		if e["type"] == "response.output_item.done" {
			if !reflect.DeepEqual(e["item"], got["output"].([]any)[at]) || e["output_index"] != float64(at) {
				t.Errorf("item %d: %v, and not %v", at, e["item"], got["output"].([]any)[at])
			}
			at++
		}
	}
}

// A conversation is a thread: its items are those that were added and what was answered, each
// can be read and deleted, and a response of it goes on from there.
func TestConversation_Items(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := w.must("POST", "/v1/conversations", `{"metadata":{"a":"1"},"items":[{"type":"message","role":"user","content":"one"},{"role":"assistant","content":"first"}]}`)
	id := c["id"].(string)
	if !strings.HasPrefix(id, "conv_") || c["object"] != "conversation" || c["metadata"].(object)["a"] != "1" {
		t.Fatalf("%v", c)
	}
	got := w.must("POST", "/v1/responses", `{"model":"triage","conversation":"`+id+`","input":"two"}`)
	if shown := w.model.shown(); shown != "user:one | assistant:first | user:two" || got["conversation"].(object)["id"] != id {
		t.Errorf("%s: %v", shown, got["conversation"])
	}
	all := w.must("GET", "/v1/conversations/"+id+"/items?order=asc", "")
	if texts(all["data"]) != "one first two Hello, you." || all["has_more"] != false {
		t.Errorf("%v", all)
	}
	data := all["data"].([]any)
	last := data[3].(object)
	if last["id"] != got["output"].([]any)[0].(object)["id"] {
		t.Errorf("%v is not %v", last, got["output"])
	}
	pageOne := w.must("GET", "/v1/conversations/"+id+"/items?limit=3", "")
	pageTwo := w.must("GET", fmt.Sprintf("/v1/conversations/%s/items?limit=3&after=%v", id, pageOne["last_id"]), "")
	if texts(pageOne["data"]) != "Hello, you. two first" || pageOne["has_more"] != true || texts(pageTwo["data"]) != "one" || pageTwo["has_more"] != false {
		t.Errorf("%v, then %v", pageOne, pageTwo)
	}
	added := w.must("POST", "/v1/conversations/"+id+"/items", `{"items":[{"role":"user","content":"three"}]}`)
	item := added["data"].([]any)[0].(object)
	if one := w.must("GET", fmt.Sprintf("/v1/conversations/%s/items/%v", id, item["id"]), ""); !reflect.DeepEqual(one, item) {
		t.Errorf("%v", one)
	}
	for _, gone := range []any{item["id"], last["id"]} {
		w.must("DELETE", fmt.Sprintf("/v1/conversations/%s/items/%v", id, gone), "")
	}
	if rest := w.must("GET", "/v1/conversations/"+id+"/items?order=asc", ""); texts(rest["data"]) != "one first two" {
		t.Errorf("%v", rest)
	}
	if up := w.must("POST", "/v1/conversations/"+id, `{"metadata":{"b":"2"}}`); fmt.Sprint(up["metadata"]) != "map[b:2]" {
		t.Errorf("%v", up)
	}
	if byKey := w.must("GET", "/v1/conversations/"+strings.Replace(id, "conv_", "conv_", 1), ""); byKey["id"] != id {
		t.Errorf("%v", byKey)
	}
	w.must("DELETE", "/v1/conversations/"+id, "")
	if status, _ := w.do("GET", "/v1/conversations/"+id, ""); status != 404 {
		t.Errorf("%d", status)
	}
}

// A response in the background is queued at once, and can be read, streamed, cancelled and
// deleted.
func TestBackground(t *testing.T) {
	t.Parallel()
	w := start(t)
	begun, release := make(chan struct{}, 9), make(chan struct{})
	w.model.answers(func(a *answer, _ map[string]any) {
		a.says("Half")
		begun <- struct{}{}
		select {
		case <-release:
		case <-a.r.Context().Done():
		}
		a.ends("response.completed", "")
	})
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"hello","background":true}`)
	id := got["id"].(string)
	if got["status"] != "queued" || got["completed_at"] != nil || got["background"] != true {
		t.Errorf("%v", got)
	}
	<-begun
	if now := w.must("GET", "/v1/responses/"+id, ""); now["status"] != "in_progress" {
		t.Errorf("%v", now["status"])
	}
	if status, e := w.do("POST", "/v1/responses", `{"model":"triage","input":"x","previous_response_id":"`+id+`"}`); status != 400 {
		t.Errorf("%d %v", status, e)
	}
	done := w.must("POST", "/v1/responses/"+id+"/cancel", "")
	if done["status"] != "cancelled" || done["incomplete_details"].(object)["reason"] != "cancelled" {
		t.Errorf("%v", done)
	}
	list := w.stream("GET", "/v1/responses/"+id+"?stream=true", "")
	if got := kinds(list); !strings.HasPrefix(got, "created queued in_progress output_item.added") || !strings.HasSuffix(got, " incomplete") {
		t.Errorf("%s", got)
	}
	close(release)
	next := w.must("POST", "/v1/responses", `{"model":"triage","input":"hello","background":true}`)["id"].(string)
	list = w.stream("GET", "/v1/responses/"+next+"?stream=true", "")
	if list[len(list)-1]["response"].(object)["status"] != "completed" {
		t.Errorf("%s", kinds(list))
	}
	if gone := w.must("DELETE", "/v1/responses/"+next, ""); gone["deleted"] != true || gone["id"] != next {
		t.Errorf("%v", gone)
	}
	if status, _ := w.do("GET", "/v1/responses/"+next, ""); status != 404 {
		t.Errorf("%d", status)
	}
	if e := w.event(events.LifecycleDeletedType); !e.Data.(events.LifecycleDeleted).Purge {
		t.Errorf("its contents stay: %+v", e.Data)
	}
}

// A run that fails is a response that failed; one that its model cut off is incomplete.
func TestResponse_FailedAndIncomplete(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, _ map[string]any) {
		a.event("error", `"error":{"code":"invalid_prompt","message":"no such thing"}`)
	})
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"hello"}`)
	if e := got["error"].(object); got["status"] != "failed" || !strings.Contains(e["message"].(string), "no such thing") || e["code"] != "server_error" {
		t.Errorf("%v", got)
	}
	list := w.stream("POST", "/v1/responses", `{"model":"triage","input":"hello","stream":true}`)
	if kinds(list) != "created in_progress error failed" || list[2]["error"].(object)["message"] == "" {
		t.Errorf("%s", kinds(list))
	}
	w.model.answers(func(a *answer, _ map[string]any) {
		a.says("Half an")
		a.ends("response.incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`)
	})
	if got := w.must("POST", "/v1/responses", `{"model":"triage","input":"hello"}`); got["status"] != "incomplete" || got["incomplete_details"].(object)["reason"] != "max_output_tokens" || texts(got["output"]) != "Half an" {
		t.Errorf("%v", got)
	}
	list = w.stream("POST", "/v1/responses", `{"model":"triage","input":"hello","stream":true}`)
	if !strings.HasSuffix(kinds(list), "output_item.done incomplete") {
		t.Errorf("%s", kinds(list))
	}
}

// A response that is deleted cannot be continued, though its conversation goes on.
func TestPrevious_Deleted(t *testing.T) {
	t.Parallel()
	w := start(t)
	first := w.must("POST", "/v1/responses", `{"model":"triage","input":"one"}`)["id"].(string)
	second := w.must("POST", "/v1/responses", `{"model":"triage","input":"two","previous_response_id":"`+first+`"}`)["id"].(string)
	w.must("DELETE", "/v1/responses/"+second, "")
	status, got := w.do("POST", "/v1/responses", `{"model":"triage","input":"x","previous_response_id":"`+second+`"}`)
	if status != 404 || got["error"].(object)["code"] != "previous_response_not_found" || got["error"].(object)["param"] != "previous_response_id" {
		t.Errorf("%d %v", status, got)
	}
	w.must("POST", "/v1/responses", `{"model":"triage","input":"x","previous_response_id":"`+first+`"}`)
}

// A response that continues another while that one is deleted is refused, or stays.
func TestPrevious_DeletedMeanwhile(t *testing.T) {
	t.Parallel()
	w := start(t)
	for range 12 {
		first := w.must("POST", "/v1/responses", `{"model":"triage","input":"one"}`)["id"].(string)
		begin, next := make(chan struct{}), make(chan string, 8)
		var asking sync.WaitGroup
		for range cap(next) {
			asking.Go(func() {
				<-begin
				if status, got := w.do("POST", "/v1/responses", `{"model":"triage","input":"two","background":true,"previous_response_id":"`+first+`"}`); status == http.StatusOK {
					next <- got["id"].(string)
				} else if status != http.StatusNotFound {
					t.Errorf("%d %v", status, got)
				}
			})
		}
		asking.Go(func() {
			<-begin
			w.do("DELETE", "/v1/responses/"+first, "")
		})
		close(begin)
		asking.Wait()
		close(next)
		for id := range next {
			w.must("GET", "/v1/responses/"+id, "")
		}
	}
}

// A refusal of the items of a conversation names them as the request does.
func TestConversation_RefusedItems(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := w.must("POST", "/v1/conversations", `{}`)["id"].(string)
	for _, path := range []string{"/v1/conversations", "/v1/conversations/" + id + "/items"} {
		for items, want := range map[string]string{
			`[{"bad":1}]`: "items/0/role",
			`[{"role":"user","content":"x"},{"role":"king","content":"x"}]`: "items/1/role",
			`[7]`: "items/0",
		} {
			status, got := w.do("POST", path, `{"items":`+items+`}`)
			if e := got["error"].(object); status != 400 || e["param"] != want || strings.Contains(e["message"].(string), "/data/") {
				t.Errorf("%s %s: %d %v", path, items, status, got)
			}
		}
	}
}
