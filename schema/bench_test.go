package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// commitRequest is a thread.commit of twelve commands in about 5 KB, such as a
// turn makes.
func commitRequest() []byte {
	var b strings.Builder
	b.WriteString(`{"commandId":"cmd-01890a5d","threadId":"T-01890a5d-ac96-774b-bcce-b302099a8057","expectedVersion":12,"actor":"user:ada","data":{"commands":[`)
	words := strings.Repeat("Some words of a message, and more. ", 8)
	fmt.Fprintf(&b, `{"command":"item.create","data":{"item":{"id":"itm_u1","type":"message","role":"user","channel":"web","content":[{"type":"input_text","text":"%s"}],"metadata":{"source":"import","line":17}}}}`, words)
	b.WriteString(`,{"command":"execution.create","data":{"id":"exe_1","triggerItemId":"itm_u1","reactionItemId":"itm_a1"}}`)
	b.WriteString(`,{"command":"step.create","data":{"id":"stp_1","executionId":"exe_1","iteration":0}}`)
	for i := range 4 {
		fmt.Fprintf(&b, `,{"command":"part.put","data":{"stepId":"stp_1","idx":%d,"type":"output_text","part":{"type":"output_text","text":"%s"}}}`, i, words)
	}
	fmt.Fprintf(&b, `,{"command":"item.create","data":{"item":{"id":"itm_a1","type":"message","role":"assistant","status":"pending","content":[{"type":"output_text","text":"%s"},{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}]}}}`, words+words)
	fmt.Fprintf(&b, `,{"command":"item.create","data":{"item":{"type":"action_execute","parentItemId":"itm_a1","content":{"callId":"tc_1","name":"plan_writer","arguments":{"scope":"full","notes":"%s"}}}}}`, words)
	fmt.Fprintf(&b, `,{"command":"item.create","data":{"item":{"type":"action_result","parentItemId":"itm_a1","content":{"callId":"tc_1","output":{"ok":true,"plan":"%s"}}}}}`, words)
	fmt.Fprintf(&b, `,{"command":"step.status","data":{"stepId":"stp_1","to":"completed","continueLoop":false,"toolExecutionResults":[{"toolCallId":"tc_1","output":"%s"}]}}`, words+words)
	b.WriteString(`,{"command":"context.set","data":{"patch":{"turns":1}}}`)
	b.WriteString(`]}}`)
	return []byte(b.String())
}

// BenchmarkDoor reads a whole thread.commit, as the command service does.
func BenchmarkDoor(b *testing.B) {
	v := newValidator(b)
	raw := commitRequest()
	for name, decode := range map[string]func(string, []byte) (any, error){
		"Trusted": func(name string, raw []byte) (any, error) { return v.DecodeTrusted(name, raw) },
		"Checked": func(name string, raw []byte) (any, error) { return v.DecodeCommand(name, raw) },
	} {
		b.Run("Commit"+name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				request, err := v.DecodeRequest(raw)
				if err != nil {
					b.Fatal(err)
				}
				commit, err := decode("thread.commit", request.Data)
				if err != nil {
					b.Fatal(err)
				}
				for _, c := range commit.(events.CommitThread).Commands {
					if _, err := decode(c.Command, c.Data); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkDoorQuery reads a query.
func BenchmarkDoorQuery(b *testing.B) {
	v := newValidator(b)
	raw := []byte(`{"threadId":"key:import:17","order":"desc","limit":50,"minSeq":123456}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.DecodeQuery("item.list", raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDoorRefuses reads a request that is wrong at its end: a refusal must
// not cost more than what is right.
func BenchmarkDoorRefuses(b *testing.B) {
	v := newValidator(b)
	raw := []byte(`{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}],"color":"red"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.DecodeCommand("item.create", raw); err == nil {
			b.Fatal("taken")
		}
	}
}

func newValidator(t testing.TB) *Validator {
	t.Helper()
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
