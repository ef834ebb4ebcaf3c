package responses_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// strictItem is an item of a request's input as an endpoint reads it.
type strictItem struct {
	Type      string      `json:"type"`
	ID        *string     `json:"id"`
	Role      string      `json:"role"`
	Content   events.JSON `json:"content"`
	CallID    string      `json:"call_id"`
	Name      string      `json:"name"`
	Arguments *string     `json:"arguments"`
	Output    events.JSON `json:"output"`
	Summary   events.JSON `json:"summary"`
}

// wireName matches a name that the protocol permits.
var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// refusals returns what OpenAI's endpoint refuses of a request.
func refusals(body events.JSON) (bad []string) {
	var request struct {
		Model string       `json:"model"`
		Input []strictItem `json:"input"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return []string{"not a request: " + err.Error()}
	}
	refuse := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if request.Model == "" {
		refuse("you must provide a model parameter")
	}
	if len(request.Input) == 0 {
		refuse("invalid input: empty array")
	}
	calls, outputs, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for n, i := range request.Input {
		if i.ID != nil {
			if ids[*i.ID] {
				refuse("input[%d]: duplicate item with id %s", n, *i.ID)
			}
			ids[*i.ID] = true
			if want := map[string]string{"reasoning": "rs", "message": "msg", "function_call": "fc", "web_search_call": "ws"}[i.Type]; !strings.HasPrefix(*i.ID, want) || len(*i.ID) > 64 {
				refuse("input[%d].id: %s; expected an id that begins with %s", n, *i.ID, want)
			}
		}
		switch i.Type {
		case "function_call":
			if calls[i.CallID] {
				refuse("input[%d]: duplicate function_call %s", n, i.CallID)
			}
			calls[i.CallID] = true
			if !wireName.MatchString(i.Name) || i.Arguments == nil || i.CallID == "" || len(i.CallID) > 64 {
				refuse("input[%d]: %q, %q, arguments %v", n, i.CallID, i.Name, i.Arguments)
			}
		case "function_call_output":
			if !calls[i.CallID] || outputs[i.CallID] {
				refuse("input[%d]: no call, or a second output, of %s", n, i.CallID)
			}
			outputs[i.CallID] = true
			if k := jsontext.Value(i.Output).Kind(); k != '"' && k != '[' {
				refuse("input[%d].output is %c", n, k)
			}
		case "reasoning":
			follower := strictItem{}
			if n+1 < len(request.Input) {
				follower = request.Input[n+1]
			}
			if follower.Type != "function_call" && follower.Type != "web_search_call" && follower.Type != "reasoning" && (follower.Type != "message" || follower.Role != "assistant") {
				refuse("input[%d] of type reasoning was provided without its required following item", n)
			}
			if jsontext.Value(i.Summary).Kind() != '[' {
				refuse("input[%d].summary is missing", n)
			}
		case "message":
			bad = append(bad, messageRefusals(n, i)...)
		case "web_search_call":
			if i.ID == nil {
				refuse("input[%d].id is missing", n)
			}
		case "compaction", "item_reference":
		default:
			refuse("input[%d].type %q", n, i.Type)
		}
	}
	for id := range calls {
		if !outputs[id] {
			refuse("no output found for function call %s", id)
		}
	}
	return bad
}

func messageRefusals(n int, i strictItem) (bad []string) {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if !slices.Contains([]string{"user", "assistant", "system", "developer"}, i.Role) {
		bad = append(bad, fmt.Sprintf("input[%d].role %q", n, i.Role))
	}
	if json.Unmarshal(i.Content, &parts) != nil || len(parts) == 0 {
		return append(bad, fmt.Sprintf("input[%d].content is empty", n))
	}
	permitted := []string{"input_text", "input_image", "input_file"}
	if i.Role == "assistant" {
		permitted = []string{"output_text", "refusal"}
	}
	for _, p := range parts {
		if !slices.Contains(permitted, p.Type) || strings.HasSuffix(p.Type, "_text") && p.Text == "" {
			bad = append(bad, fmt.Sprintf("input[%d].content has %q of %s", n, p.Type, i.Role))
		}
	}
	return bad
}

// strict serves an endpoint that refuses what OpenAI's refuses, and else writes answer.
func strict(t *testing.T, answer func(w *stream)) *endpoint {
	t.Helper()
	var e *endpoint
	e = serve(t, func(w *stream, _ *http.Request) {
		if bad := refusals(e.body(t, e.count()-1)); len(bad) > 0 {
			message, _ := json.Marshal(strings.Join(bad, "; "))
			w.w.Header().Set("Content-Type", "application/json")
			w.w.WriteHeader(http.StatusBadRequest)
			_, _ = w.w.Write([]byte(`{"error":{"type":"invalid_request_error","code":null,"message":` + string(message) + `}}`))
			return
		}
		answer(w)
	})
	return e
}
