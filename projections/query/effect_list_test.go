package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
)

// effectsOf reads all pages of a list of effects, and returns their names and the number of pages.
func (a *asker) effectsOf(fields string, between func()) (names []string, pages int) {
	a.Helper()
	for cursor := ""; ; {
		page := ask[events.EffectList](a, "effect.list", fmt.Sprintf(`{%s%s}`, fields, cursor))
		for _, e := range page.Effects {
			names = append(names, e.Name)
		}
		if pages++; page.NextCursor == "" {
			return names, pages
		}
		if pages == 1 && between != nil {
			between()
		}
		cursor = fmt.Sprintf(`,"cursor":%q`, page.NextCursor)
	}
}

// The effects of all threads of a tenant are listed in pages, the earliest due first, with views of
// those that are late, repeated or failing; nothing of another tenant or of a deleted thread is.
func TestEffectList_OfTheTenant(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{Now: func() time.Time { return time.Now().Add(30 * time.Minute) }})
	one, two, gone := h.Do("thread.create", "", `{}`).ThreadID, h.Do("thread.create", "", `{}`).ThreadID, h.Do("thread.create", "", `{}`).ThreadID
	schedule := func(id, name, when string) string {
		t.Helper()
		return h.Do("effect.schedule", id, fmt.Sprintf(`{"name":%q,%s}`, name, when)).Result.EffectID
	}
	schedule(one, "hour", `"delayMs":3600000`)
	soon := schedule(two, "soon", `"args":{}`)
	schedule(one, "day", `"delayMs":86400000`)
	schedule(two, "hourly", `"everyMs":7200000`)
	schedule(gone, "gone", `"delayMs":1000`)
	h.Do("thread.delete", gone, `{}`)
	inside := func(name string, data any) {
		t.Helper()
		if _, err := h.Dispatcher.Inside(t.Context(), acme, two, fmt.Sprintf("w-%+v", data), name, data); err != nil {
			t.Fatal(err)
		}
	}
	inside("effect.start", thread.StartEffect{ID: soon, Firing: 1, Attempt: 1, Claim: 1})
	inside("effect.fail", thread.FailEffect{ID: soon, Firing: 1, Attempt: 1, ErrorText: "no mail"})
	h.AwaitRunner(r)
	for _, c := range []struct {
		fields string
		want   []string
		pages  int
	}{
		{``, []string{"soon", "hour", "hourly", "day"}, 1},
		{`"limit":2`, []string{"soon", "hour", "hourly", "day"}, 2},
		{`"limit":1`, []string{"soon", "hour", "hourly", "day"}, 4},
		{`"name":"day"`, []string{"day"}, 1},
		{`"only":"late"`, []string{"soon"}, 1},
		{`"only":"repeating"`, []string{"hourly"}, 1},
		{`"only":"failing"`, []string{"soon"}, 1},
		{fmt.Sprintf(`"threadId":%q`, one), []string{"hour", "day"}, 1},
		{fmt.Sprintf(`"threadId":%q,"limit":1`, one), []string{"hour", "day"}, 2},
	} {
		if got, pages := a.effectsOf(c.fields, nil); !slices.Equal(got, c.want) || pages != c.pages {
			t.Errorf("{%s}: %v in %d pages, want %v in %d", c.fields, got, pages, c.want, c.pages)
		}
	}
	got, _ := a.effectsOf(`"limit":2`, func() {
		h.Do("effect.cancel", two, fmt.Sprintf(`{"effectId":%q}`, soon))
		schedule(one, "week", `"delayMs":604800000`)
		h.AwaitRunner(r)
	})
	if want := []string{"soon", "hour", "hourly", "day", "week"}; !slices.Equal(got, want) {
		t.Errorf("while one ends and another is scheduled: %v, want %v", got, want)
	}
	page := ask[events.EffectList](a, "effect.list", `{"limit":1}`)
	a.refused(events.InvalidRequest, "effect.list", fmt.Sprintf(`{"only":"late","cursor":%q}`, page.NextCursor))
	a.refused(events.InvalidRequest, "effect.list", `{"at":{"version":1}}`)
	a.refused(events.InvalidRequest, "effect.list", `{"minVersion":1}`)
}

// A list that one answer cannot hold comes in pages, of the tenant and of a thread.
func TestEffectList_LargerThanAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	text := strings.Repeat("a", 100_000)
	var want []string
	for total := 0; total < a.q.answerBytes()*5/4; total += len(text) {
		name := fmt.Sprintf("n%d", len(want))
		h.Do("effect.schedule", id, fmt.Sprintf(`{"name":%q,"delayMs":%d,"args":{"text":%q}}`, name, 3600000+total, text))
		want = append(want, name)
	}
	h.AwaitRunner(r)
	for _, fields := range []string{fmt.Sprintf(`"threadId":%q`, id), `"limit":1000`} {
		if got, pages := a.effectsOf(fields, nil); !slices.Equal(got, want) || pages != 2 {
			t.Errorf("{%s}: %d of %d in %d pages", fields, len(got), len(want), pages)
		}
	}
}
