package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// post sends JSON over HTTP, and returns the status and the body of the answer.
func post(tb testing.TB, url, body string, header http.Header) (int, []byte) {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	if r.Header = header.Clone(); header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Skein-Tenant", "acme")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return answer.StatusCode, raw
}

// A command that reaches the dispatcher without being encoded is recorded, answered and refused as
// the same command over NATS.
func TestLocal_CommandsAreThoseOverNATS(t *testing.T) {
	t.Parallel()
	s := run(t, free(t))
	nc := natstest.Dial(t, s.Addresses().NATS)
	c, err := client.New(nc, client.Options{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"a":`, 62) + "1" + strings.Repeat("}", 62)
	message := `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]`
	raw := `"metadata":{"z":1.50,"a":"\u0041\/<\u2028>","n":-0,"big":12345678901234567890,"list":[ {} , null ]}`
	for name, fields := range map[string]string{
		"item.create ok":   `"data":{"item":` + message + `,` + raw + `}}`,
		"item.create b":    `"commandId":"c-1","expectedVersion":1,"data":{"item":` + message + `}}`,
		"item.create c":    `"expectedVersion":9,"data":{"item":` + message + `}}`,
		"item.create d":    `"expectedVersion":-1,"data":{"item":` + message + `}}`,
		"item.create e":    `"commandId":"no spaces","data":{"item":` + message + `}}`,
		"item.create f":    `"writerToken":"` + strings.Repeat("w", 129) + `","data":{"item":` + message + `}}`,
		"item.create g":    `"data":{"item":` + message + `,"metadata":` + deep + `}}`,
		"item.create h":    `"data":{"item":` + message + `,"metadata":{"a":` + deep + `}}}`,
		"item.create i":    `"data":{"item":` + message + `,"nothing":1}}`,
		"item.create j":    `"data":{}`,
		"item.create k":    `"data":null`,
		"item.create l":    `"data":[]`,
		"item.create m":    `"commandId":""`,
		"thread.commit ok": `"data":{"commands":[{"command":"item.create","data":{"item":` + message + `,` + raw + `}}},{"command":"context.create","data":{"content":{"b":1,"a":[1e2]}}}]}`,
		"thread.commit b":  `"data":{"commands":[{"command":"item.create","data":{"item":` + message + `}}},{"command":"item.create","data":{"item":1}}]}`,
		"thread.delete":    `"data":null`,
		"kv.set":           `"data":{"bucket":"b","key":"k","value":{"v":[1]}}`,
	} {
		command, _, _ := strings.Cut(name, " ")
		var told [2]string
		for i := range told {
			made, err := c.Send(t.Context(), "", events.CreateThread{})
			if err != nil {
				t.Fatal(err)
			}
			body := `{"threadId":"` + made.ThreadID + `",` + fields + `}`
			var answer []byte
			if i == 0 {
				_, answer = post(t, s.Addresses().HTTP+"/api/commands/"+command, body, nil)
			} else {
				answer = overNATS(t, c, command, body)
			}
			told[i] = plainly(answer, made.ThreadID) + "\n" + recorded(t, c, made.ThreadID)
		}
		if strings.HasSuffix(name, " ok") && !strings.Contains(told[1], "item.created") {
			t.Errorf("%s recorded no item: %s", name, told[1])
		}
		if told[0] != told[1] {
			t.Errorf("%s %.200s: in the process\n%s\nover NATS\n%s", name, fields, told[0], told[1])
		}
	}
}

// overNATS sends a command, and returns its reply, or its refusal as the edge tells it.
func overNATS(t *testing.T, c *client.Client, command, body string) []byte {
	t.Helper()
	var r struct {
		ThreadID        string         `json:"threadId"`
		CommandID       string         `json:"commandId"`
		WriterToken     string         `json:"writerToken"`
		ExpectedVersion *int64         `json:"expectedVersion"`
		Data            jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	request := client.Request{ThreadID: r.ThreadID, CommandID: r.CommandID, WriterToken: r.WriterToken, ExpectedVersion: r.ExpectedVersion}
	if r.Data != nil {
		request.Data = r.Data
	}
	var answer any
	reply, err := c.Do(t.Context(), command, request)
	if answer = reply; err != nil {
		problem, _ := edge.ProblemOf(err)
		answer = map[string]any{"error": problem}
	}
	raw, err := json.Marshal(answer, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// recorded returns the data of a thread's events, as the log has it.
func recorded(t *testing.T, c *client.Client, thread string) string {
	t.Helper()
	end, err := c.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := end.Query(t.Context(), "event.list", events.ListEvents{ThreadID: thread})
	if events.IsNotFound(err) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Events []struct {
			Type  string         `json:"type"`
			Data  jsontext.Value `json:"data"`
			Event struct {
				Type string         `json:"type"`
				Data jsontext.Value `json:"data"`
			} `json:"event"`
		} `json:"events"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, e := range list.Events {
		out += plainly([]byte(e.Type+string(e.Data)+e.Event.Type+string(e.Event.Data)), thread) + "\n"
	}
	return out
}

// plainly returns JSON without what no two commands have in common.
func plainly(raw []byte, thread string) string {
	text := strings.ReplaceAll(string(bytes.TrimSpace(raw)), thread, "THREAD")
	for pattern, as := range map[string]string{
		`[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}`: "ID", `"seq":\d+`: `"seq":0`, `\d{4}-\d\d-\d\dT[\d:.]+Z`: "TIME",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, as)
	}
	return text
}

// BenchmarkLocal_ItemCreate creates items over HTTP, each once it is stored.
func BenchmarkLocal_ItemCreate(b *testing.B) {
	server, err := server.Start(b.Context(), server.Config{Store: b.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0"}, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Stop(context.Background()) }()
	_, made := post(b, server.Addresses().HTTP+"/api/threads", `{}`, nil)
	var thread events.Reply
	if err := json.Unmarshal(made, &thread); err != nil {
		b.Fatal(err)
	}
	url := server.Addresses().HTTP + "/api/threads/" + thread.ThreadID
	for _, size := range []int{64, 16 << 10} {
		item := `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + strings.Repeat("x", size) + `"}]}}`
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if status, answer := post(b, url+"/items", item, nil); status != http.StatusCreated {
					b.Fatalf("%d: %s", status, answer)
				}
			}
		})
	}
}
