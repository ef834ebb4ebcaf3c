package query

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/service"
)

// ids returns the ids of a list.
func ids(list []events.Thread) (all []string) {
	for _, t := range list {
		all = append(all, t.ID)
	}
	return all
}

func TestThreadListFilters(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	made := []string{}
	for n := range 12 {
		made = append(made, h.Do("thread.create", "", fmt.Sprintf(`{"key":"k/%d/%d","agentId":"agent-%d","userId":"user-%d"}`, n%2, n, n%3, n%4)).ThreadID)
	}
	h.Do("thread.update", made[1], `{"archived":true}`)
	h.Do("thread.status", made[2], `{"to":"streaming"}`)
	h.Do("thread.create", "", `{}`)
	h.Do("thread.delete", made[11], `{}`)
	h.AwaitRunner(r)
	after := ask[events.Thread](a, "thread.get", `{"threadId":"`+made[8]+`"}`).CreatedAt
	end, err := h.EventLog.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter string
		want   func(events.Thread) bool
	}{
		{``, func(t events.Thread) bool { return !t.Archived }},
		{`"status":"streaming"`, func(t events.Thread) bool { return t.Status == "streaming" && !t.Archived }},
		{`"archived":true`, func(t events.Thread) bool { return t.Archived }},
		{`"archived":false`, func(t events.Thread) bool { return !t.Archived }},
		{`"agentId":"agent-1"`, func(t events.Thread) bool { return t.AgentID == "agent-1" && !t.Archived }},
		{`"agentId":"agent-1","archived":true`, func(t events.Thread) bool { return t.AgentID == "agent-1" && t.Archived }},
		{`"agentId":"nobody"`, func(events.Thread) bool { return false }},
		{`"userId":"user-2","agentId":"agent-0"`, func(t events.Thread) bool { return t.UserID == "user-2" && t.AgentID == "agent-0" && !t.Archived }},
		{`"keyPrefix":"k/1/"`, func(t events.Thread) bool { return t.Key != nil && (*t.Key)[:4] == "k/1/" && !t.Archived }},
		{`"updatedAfter":"` + after + `"`, func(t events.Thread) bool { return max(t.UpdatedAt, t.CreatedAt) > after && !t.Archived }},
	} {
		var want []string
		all := ask[events.ThreadList](a, "thread.list", fmt.Sprintf(`{"limit":1000,"minSeq":%d}`, end)).Threads
		all = append(all, ask[events.ThreadList](a, "thread.list", `{"limit":1000,"archived":true}`).Threads...)
		slices.SortFunc(all, func(a, b events.Thread) int { return int(b.Seq - a.Seq) })
		if len(all) != 12 || !slices.IsSortedFunc(all, func(a, b events.Thread) int { return int(b.Seq - a.Seq) }) {
			t.Fatalf("%d threads, or not newest change first", len(all))
		}
		for _, one := range all {
			if c.want(one) {
				want = append(want, one.ID)
			}
		}
		var got []string
		cursor := ""
		for {
			body := `{"limit":2`
			if c.filter != "" {
				body += "," + c.filter
			}
			page := ask[events.ThreadList](a, "thread.list", body+cursor+"}")
			got = append(got, ids(page.Threads)...)
			if page.NextCursor == "" {
				break
			}
			cursor = `,"cursor":"` + page.NextCursor + `"`
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.filter, got, want)
		}
	}
	page := ask[events.ThreadList](a, "thread.list", `{"limit":1}`)
	a.refused(events.InvalidRequest, "thread.list", `{"archived":true,"cursor":"`+page.NextCursor+`"}`)
}

// Pages show no thread twice, and every thread that did not change.
func TestPagingWhileThreadsChange(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	made := []string{}
	for range 60 {
		made = append(made, h.Do("thread.create", "", `{}`).ThreadID)
	}
	h.AwaitRunner(r)
	changed := map[string]bool{}
	met := map[string]int{}
	cursor := fmt.Sprintf(`,"minSeq":%d`, r.Progress().Seq())
	for n := 0; ; n++ {
		page := ask[events.ThreadList](a, "thread.list", `{"limit":7`+cursor+`}`)
		for _, one := range page.Threads {
			met[one.ID]++
		}
		if page.NextCursor == "" {
			break
		}
		cursor = `,"cursor":"` + page.NextCursor + `"`
		one := made[(n*17)%len(made)]
		changed[one] = true
		last := h.Do("thread.update", one, `{"title":"changed"}`)
		if got := ask[events.ThreadList](a, "thread.list", `{"limit":1,`+seqOf(last)+`}`); got.Threads[0].ID != one {
			t.Fatalf("the newest change is %s, not %s", got.Threads[0].ID, one)
		}
	}
	for _, id := range made {
		if n := met[id]; n > 1 || n == 0 && !changed[id] {
			t.Errorf("%s was met %d times", id, n)
		}
	}
}

// 100,000 threads are listed as fast as 1,000; the test prints what the directory costs.
func TestManyThreads(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it makes 100,000 threads, and measures times: make test-long runs it")
	}
	h := newHouse(t)
	h.Run(projections.Config{})
	few := h.asker(Config{Wait: time.Minute})
	h.putThreads(0, 1000)
	few.listed(1000)
	small := few.pageTime()
	h.putThreads(1000, 100_000)
	many := h.asker(Config{Wait: time.Minute})
	runtime.GC()
	many.listed(100_000)
	large := many.pageTime()
	t.Logf("a page of 50 of 1,000 threads took %v, of 100,000 %v", small, large)
	if large > 10*small+20*time.Millisecond {
		t.Errorf("a page of 50 took %v of 1,000 threads, and %v of 100,000", small, large)
	}
}

// listed waits until a number of threads are listed.
func (a *asker) listed(n int) {
	a.Helper()
	a.Until(func() bool { return len(a.q.directory.In(events.ThreadOpen)) == n }, "the directory does not show every thread")
}

// pageTime returns the shortest time of a few pages, filtered and from the middle.
func (a *asker) pageTime() time.Duration {
	a.Helper()
	best := time.Hour
	cursor := ""
	for range 20 {
		start := time.Now()
		out, err := a.q.Handle(a.Context(), acme, "thread.list", []byte(`{"archived":false,"agentId":"agent-1"`+cursor+`}`), service.Meta{})
		if err != nil {
			a.Fatal(err)
		}
		best = min(best, time.Since(start))
		page := out.(*events.ThreadList)
		if len(page.Threads) != 50 {
			cursor = ""
			continue
		}
		cursor = `,"cursor":"` + page.NextCursor + `"`
		if page.NextCursor == "" {
			cursor = ""
		}
	}
	return best
}

func threadDoc(n int) *events.Thread {
	key := fmt.Sprintf("customer/%06d", n)
	return &events.Thread{
		ID: fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n), Key: &key, Status: events.ThreadOpen, CreatedAt: "2026-02-20T10:00:00.000Z",
		AgentID: fmt.Sprintf("agent-%d", n%3), UserID: fmt.Sprintf("user-%d", n%1000), Stamp: events.Stamp{Version: 3, Seq: int64(uint64(n + 1))},
	}
}

// putThreads puts documents of threads into their bucket.
func (h *house) putThreads(from, to int) {
	h.Helper()
	js := h.EventLog.JetStream()
	for n := from; n < to; n++ {
		raw, err := documents.Encode(threadDoc(n))
		if err != nil {
			h.Fatal(err)
		}
		if _, err := js.PublishAsync("$KV.thread_threads."+acme+"."+threadDoc(n).ID, raw); err != nil {
			h.Fatal(err)
		}
		if n%2000 == 1999 {
			<-js.PublishAsyncComplete()
		}
	}
	<-js.PublishAsyncComplete()
}
