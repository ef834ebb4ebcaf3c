package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// hostile makes a conversation of what is meant to do harm: scripts, lines of 5 MB in all, lists
// that are nested 10,000 deep, documents that indents make 50 times as long, long results,
// and text that is turned around.
func (w *world) hostile() string {
	w.t.Helper()
	line := strings.Repeat("a", 500_000)
	var lines []string
	for range 10 {
		lines = append(lines, line)
	}
	id := w.thread(append(lines,
		`<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2"><svg onload="window.hacked = 3"><style>*{display:none}</style>`,
		`[click](javascript:window.hacked=4) [data](data:text/html,<script>window.hacked=5</script>) ![x](https://evil.example/pixel.png)`,
		"safe \u202egnp.exe\u202c \u2066hidden\u2069",
		strings.Repeat("- ", 10_000)+"deep",
		strings.Repeat("> ", 10_000)+"quoted",
	)...)
	for _, content := range []events.JSON{
		toolPart(events.JSON(strings.Repeat("[", 50)+strings.Repeat("1,", 150_000)+"1"+strings.Repeat("]", 50)), events.Quote(strings.Repeat(`<`, 150_000))),
		toolPart(events.JSON("{\"to\":\"\u202egnp.exe\"}"), events.Quote("\u202egnp.exe")),
		events.MessageText(true, &line),
	} {
		reply, err := w.client.Send(w.t.Context(), id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.Assistant, Content: content}})
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := client.Read(w.t.Context(), w.client.WithMinSeq(reply.Seq), events.ListItems{ThreadID: id}); err != nil {
			w.t.Fatal(err)
		}
	}
	return id
}

// toolPart returns the content of a message with a call of a tool.
func toolPart(input, output events.JSON) events.JSON {
	part := struct {
		Type   string      `json:"type"`
		Call   string      `json:"toolCallId"`
		State  string      `json:"state"`
		Input  events.JSON `json:"input"`
		Output events.JSON `json:"output"`
	}{events.ToolPart + "mail", "call_1", "output-available", input, output}
	raw, _ := json.Marshal([]any{part}) // cannot fail
	return raw
}

// Pages of a hostile conversation do not grow beyond what it has, and turn no text around.
func TestHandler_HostileConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.hostile()
	fields := regexp.MustCompile(`<textarea[^>]*>[^<]*</textarea>`) // what is edited stays as it is
	for _, tab := range []string{"", "/timeline", "/run", "/state", "/audit", "/family", "/files"} {
		status, body, _ := w.visitor().get("/threads/" + id + tab)
		if status != http.StatusOK || len(body) > 5_000_000 {
			t.Errorf("%s: %d with %d bytes", tab, status, len(body))
		}
		if strings.ContainsAny(fields.ReplaceAllString(body, ""), "\u202e\u2066") {
			t.Errorf("%s turns text around", tab)
		}
		if tab == "" && !strings.Contains(body, "deep</pre>") {
			t.Error("the lists are not shown as they are")
		}
		if large := tab == "" || tab == "/timeline"; large != strings.Contains(body, "more bytes are not shown here") {
			t.Errorf("%s: it says that it shows a part: %v, want %v", tab, !large, large)
		}
	}
}
