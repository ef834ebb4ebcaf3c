package query

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
)

// executionsOf reads all pages of a list of executions, and returns their ids and the number of
// pages. After the first page, between is called.
func (a *asker) executionsOf(id, fields string, between func()) (ids []string, pages int) {
	a.Helper()
	for cursor := ""; ; {
		page := ask[events.ExecutionList](a, "execution.list", fmt.Sprintf(`{"threadId":%q%s%s}`, id, fields, cursor))
		for _, x := range page.Executions {
			ids = append(ids, x.ID)
		}
		pages++
		if page.NextCursor == "" {
			return ids, pages
		}
		if pages == 1 {
			between()
		}
		cursor = fmt.Sprintf(`,"cursor":%q`, page.NextCursor)
	}
}

// nextMillisecond returns in the next one: executions of one millisecond have no order.
func nextMillisecond() {
	for now := time.Now().UnixMilli(); time.Now().UnixMilli() <= now; {
		runtime.Gosched()
	}
}

// Executions are listed in pages, from both ends, also if one of them changes its state and
// another one begins between two pages.
func TestExecutionList_Pages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	var want []string
	begin := func() {
		nextMillisecond()
		n := len(want)
		h.Do("item.create", id, fmt.Sprintf(`{"item":{"id":"i%02d","type":"message","role":"user","content":[]}}`, n))
		want = append(want, h.Do("execution.create", id, fmt.Sprintf(`{"triggerItemId":"i%02d"}`, n)).Result.ExecutionID)
		h.AwaitRunner(r)
	}
	for range 7 {
		begin()
	}
	if got, pages := a.executionsOf(id, "", nil); !slices.Equal(got, want) || pages != 1 {
		t.Errorf("%v in %d pages, not %v", got, pages, want)
	}
	got, pages := a.executionsOf(id, `,"limit":3,"order":"desc"`, begin)
	newest := slices.Clone(want[:7])
	slices.Reverse(newest)
	if !slices.Equal(got, newest) || pages != 3 {
		t.Errorf("%v in %d pages, not %v", got, pages, newest)
	}
	got, pages = a.executionsOf(id, `,"limit":3,"status":"executing"`, func() {
		h.Do("execution.status", id, fmt.Sprintf(`{"executionId":%q,"to":"failed"}`, want[0]))
		h.AwaitRunner(r)
	})
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%v in %d pages, not %v", got, pages, want)
	}
	page := ask[events.ExecutionList](a, "execution.list", fmt.Sprintf(`{"threadId":%q,"limit":3}`, id))
	a.refused(events.InvalidRequest, "execution.list", fmt.Sprintf(`{"threadId":%q,"order":"desc","cursor":%q}`, id, page.NextCursor))
}

// A list that one answer cannot hold comes in pages, also if nobody named a limit.
func TestExecutionList_LargerThanAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	text := strings.Repeat("too late ", 7_000)
	var want []string
	for total := 0; total < a.q.answerBytes()*5/4; total += len(text) {
		nextMillisecond()
		h.Do("item.create", id, fmt.Sprintf(`{"item":{"id":"i%d","type":"message","role":"user","content":[]}}`, total))
		x := h.Do("execution.create", id, fmt.Sprintf(`{"triggerItemId":"i%d"}`, total)).Result.ExecutionID
		h.Do("execution.status", id, fmt.Sprintf(`{"executionId":%q,"to":"failed","errorText":%q}`, x, text))
		want = append(want, x)
	}
	h.AwaitRunner(r)
	got, pages := a.executionsOf(id, "", func() {})
	if !slices.Equal(got, want) || pages != 2 {
		t.Errorf("%d of %d in %d pages", len(got), len(want), pages)
	}
}
