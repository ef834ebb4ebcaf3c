package model_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
)

// told is an answer with everything, and what of it a reaction has in every protocol.
func told() (a modeltest.Answer, has []string) {
	return modeltest.Answer{
			Reasoning: "thínk 🤔", Text: []string{"It ", "is ü", "🙂."},
			Calls: []modeltest.Call{{ID: "c1", Name: "look", Pieces: []string{`{\"q\"`, `:`, ` \"ä\"`, `}`}}, {ID: "c2", Name: "go", Pieces: []string{`{}`}}},
		}, []string{
			"thínk 🤔", `"text":"It is ` + "ü🙂" + `."`, `"type":"tool-look","toolCallId":"c1","input":{"q":"` + "ä" + `"}`, `"type":"tool-go","toolCallId":"c2","input":{}`,
		}
}

// frames returns how servers write an answer's events, by name.
func frames() map[string]func(w *modeltest.Stream, list []string) {
	ended := func(end string, last string) func(w *modeltest.Stream, list []string) {
		return func(w *modeltest.Stream, list []string) {
			w.Raw("data: " + strings.Join(list, end+end+"data: ") + last)
		}
	}
	return map[string]func(w *modeltest.Stream, list []string){
		"LF":                   ended("\n", "\n\n"),
		"CRLF":                 ended("\r\n", "\r\n\r\n"),
		"a lone CR":            ended("\r", "\r\r"),
		"no final blank line":  ended("\n", "\n"),
		"no final line end":    ended("\r\n", ""),
		"no final end, and CR": ended("\r", ""),
		"[DONE] at its end":    ended("\n", "\n\ndata: [DONE]\n\n"),
		"a byte order mark": func(w *modeltest.Stream, list []string) {
			w.Raw("\ufeff")
			w.Data(list...)
		},
		"byte by byte": func(w *modeltest.Stream, list []string) {
			for _, b := range []byte("data: " + strings.Join(list, "\r\n\r\ndata: ") + "\r\n\r\n") {
				w.Raw(string([]byte{b}))
			}
		},
		"comments, names, ids and no blanks": func(w *modeltest.Stream, list []string) {
			for _, data := range list {
				w.Raw(": OPENROUTER PROCESSING\n\nid: 7\nretry: 3\nevent: some.name\ndata:" + data + "\n\n\n")
			}
		},
		"data in two lines": func(w *modeltest.Stream, list []string) {
			for _, data := range list {
				w.Raw("data: " + strings.Replace(data, "{", "{\ndata:   ", 1) + "\n\n")
			}
		},
	}
}

// However a server writes its events, the answer is the same.
func TestQuirks_Frames(t *testing.T) {
	t.Parallel()
	a, has := told()
	for name, write := range frames() {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
				got := react(t, p, func(w *modeltest.Stream) { write(w, p.Tell(a)) })
				content := modeltest.Written(t, got.AssistantEvent.Content)
				for _, one := range has {
					if !strings.Contains(content, one) {
						t.Errorf("%s, without %s", content, one)
					}
				}
				if calls := modeltest.Written(t, got.ToolCalls); calls != `[{"callId":"c1","name":"look","arguments":{"q":"`+"ä"+`"}},{"callId":"c2","name":"go","arguments":{}}]` {
					t.Errorf("calls %s", calls)
				}
				u := *got.Usage
				u.LatencyMs, u.ReasoningTokens = 0, 0 // which Messages does not count
				if u != (runtime.Usage{Provider: p.Codec.Protocol().Provider, Model: "test-model-1", InputTokens: 120, CachedTokens: 100, OutputTokens: 30, TotalTokens: 150}) {
					t.Errorf("usage %+v", u)
				}
				if s := modeltest.Canonical(t, string(got.ProviderUsage)); s != modeltest.Canonical(t, p.Usage) {
					t.Errorf("the provider's usage is %s, not %s", s, p.Usage)
				}
			})
		})
	}
}

// react returns the reaction to an answer.
func react(t *testing.T, p modeltest.Protocol, write func(w *modeltest.Stream)) *runtime.Reaction {
	t.Helper()
	got, err := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) { write(w) }).Reactor(t, p.Codec).React(t.Context(), modeltest.Input(), &modeltest.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// An answer that is cut anywhere before its end broke off; after it, it is whole.
func TestQuirks_CutAnywhere(t *testing.T) {
	t.Parallel()
	a, _ := told()
	overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
		all := strings.Join(p.Tell(a), "\n\ndata: ")
		all = "data: " + all + "\n\n"
		whole := 0
		answers := make(chan func(w *modeltest.Stream), 1) // of the next request: a handler may end after its answer was read
		r := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) { (<-answers)(w) }).Reactor(t, p.Codec)
		for at := 0; at < len(all); at += 11 {
			for name, cut := range map[string]func(){"an end": func() {}, "an abort": func() { panic(http.ErrAbortHandler) }} {
				answers <- func(w *modeltest.Stream) { w.Raw(all[:at]); cut() }
				got, err := r.React(t.Context(), modeltest.Input(), &modeltest.Watch{})
				var later *runtime.RetryError
				var broke *runtime.BrokenOffError
				switch {
				case err == nil && len(got.ToolCalls) == 2:
					whole++
				case err == nil:
					t.Errorf("%s after %q: the answer is %+v", name, all[:at], got)
				case !errors.As(err, &later) || !errors.As(err, &broke):
					t.Errorf("%s after %q: %#v", name, all[:at], err)
				}
			}
		}
		if ended := p.Name == "responses"; !ended && whole == 0 {
			t.Error("no answer was whole")
		}
	})
}

// Arguments come in any pieces, as an object, or not as JSON at all.
func TestQuirks_Arguments(t *testing.T) {
	t.Parallel()
	one := func(pieces ...string) modeltest.Call { return modeltest.Call{ID: "c1", Name: "look", Pieces: pieces} }
	for name, c := range map[string]struct {
		call modeltest.Call
		want string
	}{
		"rune by rune":      {one(strings.Split(`{|\"|a|\"|:| |[|1|,|\"|ü|\"|]|}`, "|")...), `{"a":[1,"` + "ü" + `"]}`},
		"empty pieces":      {one("", `{\"a\":1}`, "", ""), `{"a":1}`},
		"blanks around":     {one(` {\"a\"`, ` : 1} `), `{"a":1}`},
		"nothing":           {one(), `{}`},
		"an object":         {modeltest.Call{ID: "c1", Name: "look", Object: `{"a":{"b":[1]}}`}, `{"a":{"b":[1]}}`},
		"an empty object":   {modeltest.Call{ID: "c1", Name: "look", Object: `{}`}, `{}`},
		"cut off":           {one(`{\"a\":`), `"{\"a\":"`},
		"a list":            {one(`[1]`), `"[1]"`},
		"a name twice":      {one(`{\"a\":1,\"a\":2}`), ``},
		"half of surrogate": {one(`{\"a\":\"\\ud83d\"}`), ``},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
				got := react(t, p, func(w *modeltest.Stream) { w.Data(p.Tell(modeltest.Answer{Calls: []modeltest.Call{c.call}})...) })
				if len(got.ToolCalls) != 1 || len(got.AssistantEvent.Content) != 1 {
					t.Fatalf("%+v", got)
				}
				if said := string(got.ToolCalls[0].Arguments); c.want != "" && said != c.want {
					t.Errorf("%s, not %s", said, c.want)
				}
			})
		})
	}
}

// Each protocol's word for the end of an answer has one meaning. A refusal is kept.
func TestQuirks_Ends(t *testing.T) {
	t.Parallel()
	words := map[string]map[string]string{
		"responses": {"max_output_tokens": events.FinishLength, "content_filter": events.FinishContentFilter, "steered": events.FinishOther},
		"chat":      {"stop": "", "tool_calls": "", "function_call": "", "length": events.FinishLength, "content_filter": events.FinishContentFilter, "eos": events.FinishOther},
		"messages": {
			"end_turn": "", "stop_sequence": "", "tool_use": "", "max_tokens": events.FinishLength, "model_context_window_exceeded": events.FinishLength, "refusal": events.FinishContentFilter,
			"pause_turn": events.FinishOther,
		},
	}
	overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
		for word, want := range words[p.Name] {
			if got := react(t, p, func(w *modeltest.Stream) { w.Data(p.Tell(modeltest.Answer{Text: []string{"so far"}, End: word})...) }); got.FinishReason != want || len(got.AssistantEvent.Content) != 1 {
				t.Errorf("%s: %q, not %q; %s", word, got.FinishReason, want, got.AssistantEvent.Content)
			}
		}
		// the call that was being written is not made
		half := modeltest.Call{ID: "c2", Name: "go", Pieces: []string{`{\"a`}}
		got := react(t, p, func(w *modeltest.Stream) {
			w.Data(p.Tell(modeltest.Answer{Text: []string{"so far"}, Calls: []modeltest.Call{{ID: "c1", Name: "go", Pieces: []string{"{}"}}, half}, End: p.Length})...)
		})
		if got.FinishReason != events.FinishLength || len(got.ToolCalls) != 1 || got.ToolCalls[0].CallID != "c1" {
			t.Errorf("%s: %q, calls %+v", p.Length, got.FinishReason, got.ToolCalls)
		}
		got = react(t, p, func(w *modeltest.Stream) { w.Data(p.Tell(modeltest.Answer{Refusal: "I cannot."})...) })
		kept := []string{`[{"refusal":"I cannot.","type":"refusal"}]`, `[{"text":"I cannot.","type":"output_text"}]`}
		if s := modeltest.Written(t, got.AssistantEvent.Content); !slices.Contains(kept, s) {
			t.Errorf("the refusal is %s", s)
		}
	})
}

// Usage that is none costs no answer.
func TestQuirks_Usage(t *testing.T) {
	t.Parallel()
	overProtocols(t, func(t *testing.T, p modeltest.Protocol) {
		for _, usage := range []string{`null`, `{}`, `[]`, `7`, `"many"`, `{"input_tokens":"5","prompt_tokens":1.5,"output_tokens":{}}`} {
			got := react(t, p, func(w *modeltest.Stream) { w.Data(p.Tell(modeltest.Answer{Text: []string{"fine"}, Usage: usage})...) })
			if len(got.AssistantEvent.Content) != 1 {
				t.Errorf("%s: %+v", usage, got)
			}
		}
	})
}
