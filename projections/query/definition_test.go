package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
)

func names(list *events.DefinitionList) []string {
	out := []string{}
	for _, d := range list.Definitions {
		out = append(out, fmt.Sprintf("%s/%s@%d", d.Kind, d.Name, d.Version))
	}
	return out
}

// The queries of definitions: as they are, as they were, in pages by kind and
// name. SA-61: one that is not there is not found. SA-58, SA-59, SA-60: the names
// of a kind.
func TestDefinitionQueries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Run(projections.Config{})
	a := h.asker(Config{})
	h.Apply(`{"definitions":[
		{"kind":"agent","definition":{"name":"support","type":"ai_human","model":"gpt-4.1"}},
		{"kind":"model","definition":{"name":"gpt-4.1","model":"gpt-4.1"}},
		{"kind":"prompt","definition":{"name":"help","text":"Help."}},
		{"kind":"prompt","definition":{"name":"a:b/c..d.","text":"x"}}]}`)
	second := h.Apply(`{"definitions":[{"kind":"prompt","definition":{"name":"help","text":"Help more."}}]}`)
	last := h.Apply(`{"remove":[{"kind":"prompt","name":"a:b/c..d."}],"definitions":[{"kind":"prompt","definition":{"name":"z","text":"z"}}]}`)
	fresh := fmt.Sprintf(`"minSeq":%d`, last.Seq)

	got := ask[events.Definition](a, "definition.get", `{"kind":"prompt","name":"help",`+fresh+`}`)
	if got.Version != 2 || string(got.Definition) != `{"name":"help","text":"Help more."}` || got.Seq != second.Seq || got.Digest != events.DefinitionDigest(got.Definition) {
		t.Errorf("%+v", got)
	}
	now := readtest.Encode(t, got)
	if was := ask[events.Definition](a, "definition.get", `{"kind":"prompt","name":"help","version":1}`); was.Version != 1 || !strings.Contains(string(was.Definition), `"Help."`) {
		t.Errorf("%+v", was)
	}
	if same := readtest.Encode(t, ask[events.Definition](a, "definition.get", `{"kind":"prompt","name":"help","version":2}`)); same != now {
		t.Errorf("by its version %s, and now %s", same, now)
	}
	if was := ask[events.Definition](a, "definition.get", `{"kind":"prompt","name":"a:b/c..d.","version":1}`); was.Version != 1 {
		t.Errorf("one that was removed: %+v", was)
	}
	for _, body := range []string{
		`{"kind":"prompt","name":"none",` + fresh + `}`, `{"kind":"agent","name":"help",` + fresh + `}`, `{"kind":"prompt","name":"a:b/c..d.",` + fresh + `}`,
		`{"kind":"prompt","name":"help","version":3}`, `{"kind":"prompt","name":"a:b/c..d.","version":2}`,
	} {
		a.refused(events.NotFound, "definition.get", body)
	}
	for _, body := range []string{`{"kind":"spell","name":"a"}`, `{"kind":"prompt","name":"a b"}`, `{"kind":"prompt","name":"help","version":0}`, `{"kind":"prompt","name":"help","minVersion":1}`} {
		a.refused(events.InvalidRequest, "definition.get", body)
	}
	for body, want := range map[string]string{
		`{` + fresh + `}`:                       "agent/support@1 model/gpt-4.1@1 prompt/help@2 prompt/z@1",
		`{"kind":"prompt",` + fresh + `}`:       "prompt/help@2 prompt/z@1",
		`{"kind":"tool",` + fresh + `}`:         "",
		`{"limit":2,"bare":true,` + fresh + `}`: "agent/support@1 model/gpt-4.1@1",
	} {
		list := ask[events.DefinitionList](a, "definition.list", body)
		if got := strings.Join(names(list), " "); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
		for _, d := range list.Definitions {
			if bare := strings.Contains(body, "bare"); (d.Definition == nil) != bare {
				t.Errorf("%s: %s", body, d.Definition)
			}
		}
	}
	a.refused(events.InvalidRequest, "definition.list", `{"cursor":"x"}`)
	other := ask[events.DefinitionList](a, "definition.list", `{"kind":"prompt","limit":1}`).NextCursor
	a.refused(events.InvalidRequest, "definition.list", `{"cursor":"`+other+`"}`)
}

// Pages show every definition once, in order, also when an answer can hold only
// some of them.
func TestDefinitionPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	var want []string
	for i := range 60 {
		text := "x"
		if i%2 == 0 {
			text = strings.Repeat("x", 200<<10) // thirty of these are more than an answer holds
		}
		h.Apply(fmt.Sprintf(`{"definitions":[{"kind":"prompt","definition":{"name":"p%03d","text":%q}},{"kind":"prompt","definition":{"name":"gone%03d","text":"x"}}]}`, i, text, i))
		want = append(want, fmt.Sprintf("prompt/p%03d@1", i))
	}
	for i := range 60 {
		h.Apply(fmt.Sprintf(`{"remove":[{"kind":"prompt","name":"gone%03d"}]}`, i))
	}
	h.AwaitRunner(r)
	for _, limit := range []int{7, 1000} {
		var got []string
		for cursor, pages := "", 0; ; pages++ {
			list := ask[events.DefinitionList](a, "definition.list", fmt.Sprintf(`{"limit":%d,"cursor":%q}`, limit, cursor))
			got = append(got, names(list)...)
			if cursor = list.NextCursor; cursor == "" {
				break
			}
			if pages > 100 {
				t.Fatal("the pages have no end")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	h.Same()
}
