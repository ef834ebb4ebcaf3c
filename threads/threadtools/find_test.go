package threadtools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/threads/threadtools"
)

func TestFind_WordsOfLists(t *testing.T) {
	h := start(t)
	env := events.JSON(`{"initial":{"tags":["model:gpt-5",7],"trees":[{"repository":{"url":"https://git.example/Shop"}}]}}`)
	order := h.thread(events.CreateThread{Title: "Where is order 42?", Key: "support/42"}, "unicorn")
	coded := h.thread(events.CreateThread{Title: "A change", AgentID: "coder", Env: env})
	odd := h.thread(events.CreateThread{Env: events.JSON(`{"initial":{"tags":"none","trees":{}}}`), Title: strings.Repeat("é", 500)})
	old := h.thread(events.CreateThread{Title: "order of old"})
	_, err := h.c.Send(t.Context(), old, events.UpdateThread{Archived: new(true)})
	h.s.Must(err)
	r := threadtools.New(h.c)
	for name, c := range map[string]struct {
		a    threadtools.FindArgs
		want []string
	}{
		"all":              {threadtools.FindArgs{}, []string{odd, coded, order}},
		"title":            {threadtools.FindArgs{Query: "ORDER where"}, []string{order}},
		"every word":       {threadtools.FindArgs{Query: "order change"}, nil},
		"key":              {threadtools.FindArgs{Query: "support/"}, []string{order}},
		"id":               {threadtools.FindArgs{Query: odd}, []string{odd}},
		"tag":              {threadtools.FindArgs{Query: "gpt-5"}, []string{coded}},
		"repository":       {threadtools.FindArgs{Query: "example/shop"}, []string{coded}},
		"agent":            {threadtools.FindArgs{Agent: "coder"}, []string{coded}},
		"archived":         {threadtools.FindArgs{Archived: true}, []string{old}},
		"text of messages": {threadtools.FindArgs{Query: "unicorn"}, nil},
		"since":            {threadtools.FindArgs{Since: "2020-01-01"}, []string{odd, coded, order}},
		"since later":      {threadtools.FindArgs{Since: "2999-01-01T00:00:00Z"}, nil},
		"until":            {threadtools.FindArgs{Until: "2020-01-01"}, nil},
		"until later":      {threadtools.FindArgs{Until: "2999-01-01", Limit: 2}, []string{odd, coded}},
	} {
		got, err := r.Find(t.Context(), c.a)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var ids []string
		for _, one := range got.Threads {
			ids = append(ids, one.ThreadID)
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("%s: %q, want %q", name, ids, c.want)
		}
	}
	for name, a := range map[string]threadtools.FindArgs{
		"limit": {Limit: 51}, "below": {Limit: -1}, "huge limit": {Limit: 1 << 62}, "since": {Since: "yesterday"}, "until": {Until: "x"}, "cursor": {Cursor: "x"}, "made up": {Cursor: "0.x"}, "negative": {Cursor: "-1."},
		"query": {Query: strings.Repeat("q", 501)}, "agent": {Agent: "a b\n"},
	} {
		if _, err := r.Find(t.Context(), a); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Following next shows each thread once, whatever the limit is.
func TestFind_Pages(t *testing.T) {
	h := start(t)
	want := []string{}
	for i := range 120 {
		want = append(want, h.thread(events.CreateThread{Title: fmt.Sprint("number ", i)}))
	}
	slices.Reverse(want)
	for _, limit := range []int64{1, 7, 50} {
		got, searched := []string{}, int64(0)
		for a := (threadtools.FindArgs{Query: "number", Limit: limit}); ; {
			f, err := threadtools.New(h.c).Find(t.Context(), a)
			h.s.Must(err)
			searched += f.Searched
			for _, one := range f.Threads {
				got = append(got, one.ThreadID)
			}
			if a.Cursor = f.Next; f.Next == "" {
				break
			}
		}
		if !slices.Equal(got, want) || searched != 120 {
			t.Errorf("limit %d: %d threads, %d searched", limit, len(got), searched)
		}
	}
}
