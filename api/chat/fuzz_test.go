package chat

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Whatever a client sends is refused with a code of its own, or becomes items that a thread
// accepts, which are shown again as messages that clients accept.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"x"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AA=="},{"type":"data-x","data":null}]}]}`,
		`{"id":"c","message":{"id":"a.b","role":"assistant","metadata":{"a":1},"parts":[{"type":"tool-x","toolCallId":"c1","state":"output-error","errorText":"no"},{"type":"dynamic-tool","toolName":"y","toolCallId":"c2","state":"output-available","output":[1]},{"type":"reasoning","text":"r"},{"type":"source-url","sourceId":"s","url":"u"},{"type":"file","mediaType":"","url":"http://a"}]}}`,
		`{"id":"c","trigger":"regenerate-message","messageId":null,"messages":null}`,
		`{"id":"c","messages":[null,1,{"parts":[{}]}]}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		req, err := readRequest([]byte(body))
		if err != nil {
			if code := events.AsError(err).Code; code != events.InvalidRequest {
				t.Fatalf("refused with %s: %v", code, err)
			}
			return
		}
		for i := range req.Messages {
			m, err := req.message(i)
			if err != nil {
				continue
			}
			item, err := itemOf(m, "")
			if err != nil {
				if code := events.AsError(err).Code; code != events.InvalidRequest {
					t.Fatalf("message %d is refused with %s: %v", i, code, err)
				}
				continue
			}
			if err := item.Check(); err != nil {
				t.Fatalf("message %d becomes an item that is refused: %v\n%s", i, err, item.Content)
			}
			shown := messageOf(&events.Item{ID: "itm_1", Type: item.Type, Role: item.Role, Content: item.Content, Metadata: item.Metadata}, nil)
			if _, err := json.Marshal(shown); err != nil {
				t.Fatalf("message %d cannot be shown: %v", i, err)
			}
		}
	})
}
