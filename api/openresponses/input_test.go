package openresponses_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A long text is stored once, however it is sent, and is shown as it was sent; one that exceeds
// an event is refused by the name that the request has for it.
func TestInput_LongText(t *testing.T) {
	t.Parallel()
	w := start(t)
	long := strings.Repeat("word ", 100_000)
	for name, form := range map[string]string{
		"input":   `{"model":"triage","input":%q}`,
		"content": `{"model":"triage","input":[{"role":"user","content":%q}]}`,
		"parts":   `{"model":"triage","input":[{"role":"user","content":[{"type":"input_text","text":%q}]}]}`,
	} {
		got := w.must("POST", "/v1/responses", fmt.Sprintf(form, long))
		items := w.must("GET", fmt.Sprintf("/v1/responses/%v/input_items", got["id"]), "")["data"].([]any)
		if text := items[0].(object)["content"].([]any)[0].(object)["text"]; len(items) != 1 || text != long {
			t.Errorf("%s: shown as %d items, the first of %d bytes", name, len(items), len(fmt.Sprint(text)))
		}
	}
	status, out := w.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":[{"role":"user","content":"x"},{"role":"user","content":%q}]}`, long+long))
	refusal, _ := out["error"].(object)
	if message := fmt.Sprint(refusal["message"]); status != http.StatusRequestEntityTooLarge || refusal["param"] != "input/1" || strings.Contains(message, "command") || !strings.Contains(message, "524288") {
		t.Errorf("%d %v", status, out)
	}
}

// An input of as many items as the bound allows is stored whole and in order, wherever a request
// may have one; a longer one is refused by the parameter's name and its bound.
func TestInput_ManyItems(t *testing.T) {
	t.Parallel()
	w := start(t)
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"role":%q,"content":"m%d"}`, []string{"user", "assistant"}[i%2], i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	conversation := fmt.Sprint(w.must("POST", "/v1/conversations", `{}`)["id"])
	previous := fmt.Sprint(w.must("POST", "/v1/responses", `{"model":"triage","input":"hello"}`)["id"])
	for name, c := range map[string]struct {
		path, form string // of the body, with the items
		param      string
		shown      int // how many items the model is shown besides these; -1: it is not asked
	}{
		"response":             {"/v1/responses", `{"model":"triage","input":%s}`, "input", 0},
		"not stored":           {"/v1/responses", `{"model":"triage","store":false,"input":%s}`, "input", 0},
		"after a response":     {"/v1/responses", `{"model":"triage","previous_response_id":"` + previous + `","input":%s}`, "input", 2},
		"in a conversation":    {"/v1/responses", `{"model":"triage","conversation":"` + conversation + `","input":%s}`, "input", 0},
		"in the background":    {"/v1/responses", `{"model":"triage","background":true,"input":%s}`, "input", -1},
		"a new conversation":   {"/v1/conversations", `{"items":%s}`, "items", -1},
		"a compaction":         {"/v1/responses/compact", `{"model":"triage","input":%s}`, "input", 1},
		"a discarded one":      {"/v1/responses/compact", `{"model":"triage","store":false,"input":%s}`, "input", 1},
		"another conversation": {"/v1/conversations/" + fmt.Sprint(w.must("POST", "/v1/conversations", `{}`)["id"]) + "/items", `{"items":%s}`, "items", -1},
	} {
		t.Run(name, func(t *testing.T) {
			if status, out := w.do("POST", c.path, fmt.Sprintf(c.form, many(900))); status != http.StatusOK {
				t.Fatalf("900 items: %d %v", status, out)
			}
			if c.shown >= 0 {
				input, _ := w.model.last()["input"].([]any)
				if len(input) != 900+c.shown || !strings.Contains(fmt.Sprint(input[len(input)-1-min(c.shown, 1)%2]), "m89") {
					t.Errorf("the model is shown %d items, the last ones %v", len(input), input[max(0, len(input)-2):])
				}
			}
			status, out := w.do("POST", c.path, fmt.Sprintf(c.form, many(901)))
			e, _ := out["error"].(object)
			if status != http.StatusBadRequest || e["param"] != c.param || !strings.Contains(fmt.Sprint(e["message"]), "at most 900 items") {
				t.Errorf("901 items: %d %v", status, out)
			}
		})
	}
	for form, param := range map[string]string{
		`{"model":"triage","input":[%s,{"role":"king","content":"x"},{"role":"user","content":"x"}]}`:  "input/500/role",
		`{"model":"triage","input":[%s,{"role":"user","content":"x"},{"role":"king","content":"x"}]}`:  "input/501/role",
		`{"model":"triage","input":[%s,{"role":"user","content":"x"},{"role":"user","content":[{}]}]}`: "input/501/content/0/type",
	} {
		body := fmt.Sprintf(form, strings.Trim(many(500), "[]"))
		if status, out := w.do("POST", "/v1/responses", body); status != http.StatusBadRequest || out["error"].(object)["param"] != param {
			t.Errorf("%s: %d %v", param, status, out)
		}
	}
}
