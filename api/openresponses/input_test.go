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
