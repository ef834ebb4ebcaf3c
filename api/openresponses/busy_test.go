package openresponses_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Responses that are asked for while another of their conversation runs wait for it, in the
// order of the requests, and each sees those before it.
func TestConversation_Busy(t *testing.T) {
	t.Parallel()
	w := start(t)
	begun, release := make(chan string, 9), make(chan struct{}, 9)
	w.model.answers(func(a *answer, asked map[string]any) {
		input := asked["input"].([]any)
		begun <- input[len(input)-1].(object)["content"].([]any)[0].(object)["text"].(string)
		select {
		case <-release:
		case <-a.r.Context().Done():
		}
		a.says(fmt.Sprintf("answer %d", len(input)))
		a.ends("response.completed", "")
	})
	conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
	ask := func(text string) object {
		return w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":%q,"conversation":%q,"background":true,"instructions":"Be brief."}`, text, conversation))
	}
	first := ask("one")
	if got := <-begun; got != "one" {
		t.Fatalf("%s", got)
	}
	second := ask("two")
	third := ask("three")
	for _, r := range []object{second, third} {
		if r["status"] != "queued" || r["conversation"].(object)["id"] != conversation {
			t.Errorf("%v", r)
		}
	}
	// They are found by their ids while they wait.
	waiting := w.must("GET", fmt.Sprintf("/v1/responses/%v", third["id"]), "")
	if waiting["status"] != "queued" || waiting["instructions"] != "Be brief." || waiting["conversation"].(object)["id"] != conversation || waiting["model"] != "triage" || len(waiting["output"].([]any)) != 0 {
		t.Errorf("%v", waiting)
	}
	dropped := ask("dropped")
	path := fmt.Sprintf("/v1/responses/%v", dropped["id"])
	for _, r := range [][2]string{{"POST", path + "/cancel"}, {"GET", path}, {"POST", path + "/cancel"}} {
		got := w.must(r[0], r[1], "")
		if got["status"] != "cancelled" || got["id"] != dropped["id"] || got["created_at"] != dropped["created_at"] || len(got["output"].([]any)) != 0 {
			t.Errorf("%v: %v", r, got)
		}
	}
	if got := kinds(w.stream("GET", path+"?stream=true", "")); got != "created queued incomplete" {
		t.Errorf("its stream: %s", got)
	}
	if status, _ := w.do("DELETE", path, ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	followed := make(chan []object)
	go func() { followed <- w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true", third["id"]), "") }()
	streamed := make(chan []object)
	go func() {
		streamed <- w.stream("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"four","conversation":%q,"stream":true}`, conversation))
	}()
	for _, want := range []string{"two", "three", "four"} {
		release <- struct{}{}
		if got := <-begun; got != want {
			t.Fatalf("%s was asked, and not %s", got, want)
		}
	}
	release <- struct{}{}
	if last := streams(t, <-streamed); texts(last["output"]) != "answer 7" {
		t.Errorf("%v", last["output"])
	}
	if last := streams(t, <-followed); last["id"] != third["id"] || texts(last["output"]) != "answer 5" {
		t.Errorf("%v", last)
	}
	for i, r := range []object{first, second, third} {
		got := w.must("GET", fmt.Sprintf("/v1/responses/%v", r["id"]), "")
		conforms(t, without(got, "conversation"))
		if texts(got["output"]) != fmt.Sprintf("answer %d", 2*i+1) {
			t.Errorf("%d: %v", i, got["output"])
		}
	}
	all := w.must("GET", fmt.Sprintf("/v1/conversations/%v/items?order=asc", conversation), "")
	if got := texts(all["data"]); got != "one answer 1 two answer 3 three answer 5 four answer 7" {
		t.Errorf("%s", got)
	}
	if status, _ := w.do("GET", fmt.Sprintf("/v1/responses/%v/input_items", second["id"]), ""); status != http.StatusOK {
		t.Errorf("%d", status)
	}
}

// without returns an object without a field.
func without(o object, name string) object {
	delete(o, name)
	return o
}

// The stream of a response that waits begins at once, with its id, and ends if it is cancelled
// before it has begun.
func TestConversation_StreamWhileQueued(t *testing.T) {
	t.Parallel()
	w := start(t)
	begun, release := make(chan struct{}, 9), make(chan struct{})
	w.model.answers(func(a *answer, _ map[string]any) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-a.r.Context().Done():
		}
		a.says("An answer.")
		a.ends("response.completed", "")
	})
	conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
	w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"one","conversation":%q,"background":true}`, conversation))
	<-begun
	for _, c := range []struct{ asks, first, all string }{
		{`"background":true,"stream":true`, "created queued", "created queued incomplete"},
		{`"stream":true`, "created", "created incomplete"},
	} {
		res, end := w.send("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"two","conversation":%q,%s}`, conversation, c.asks))
		lines := bufio.NewScanner(res.Body)
		var seen []object
		more := func() bool {
			for lines.Scan() {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "[DONE]" {
					seen = append(seen, decoded(t, []byte(data)))
					return true
				}
			}
			return false
		}
		for range strings.Fields(c.first) {
			more()
		}
		if got := kinds(seen); got != c.first {
			t.Fatalf("while it waits: %q", got)
		}
		id := seen[0]["response"].(object)["id"]
		if got := w.must("POST", fmt.Sprintf("/v1/responses/%v/cancel", id), ""); got["status"] != "cancelled" {
			t.Errorf("%v", got)
		}
		for more() {
		}
		last := seen[len(seen)-1]["response"].(object)
		if got := kinds(seen); got != c.all || last["incomplete_details"].(object)["reason"] != "cancelled" || last["id"] != id {
			t.Errorf("%s, and last %v", got, last)
		}
		end()
	}
	close(release)
}
