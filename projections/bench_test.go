package projections

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/service"
)

// fill puts threads with turns of 12 events into the log: one commit to make a
// thread, and one a turn.
func (h *house) fill(threads, turns int) []string {
	h.Helper()
	ids := make([]string, threads)
	var writers sync.WaitGroup
	const lanes = 64
	for lane := range lanes {
		writers.Go(func() {
			for n := lane; n < threads; n += lanes {
				ids[n] = fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n)
				h.fillThread(ids[n], turns)
			}
		})
	}
	writers.Wait()
	return ids
}

// filled gives the threads that fill makes.
func (h *house) filled(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("T-00000000-0000-7000-8000-%012d", i))
	}
	return ids
}

func (h *house) fillThread(id string, turns int) {
	state := &thread.State{}
	now := events.TimeOf(time.Now())
	put := func(n int, parts []thread.Part) {
		made, err := thread.Decide(state, &thread.Command{
			ID: fmt.Sprintf("c-%d", n), Tenant: acme, ThreadID: id, Time: now, Actor: "bench", Parts: parts,
		})
		if err != nil {
			h.Error(err)
			return
		}
		c, err := events.NewCommit(state.Chain, made)
		if err != nil {
			h.Error(err)
			return
		}
		if err := h.log.Append(h.Context(), eventlog.Write{Commit: c, Expected: state.Seq}); err != nil {
			h.Error(err)
			return
		}
		thread.Apply(state, c)
	}
	put(0, []thread.Part{{Name: "thread.create", Data: events.CreateThread{Title: "a thread"}}})
	for n := range turns {
		name := func(kind string) string { return fmt.Sprintf("%s_%s_%04d", kind, id[24:], n) }
		put(n+1, turnParts(h, name))
	}
}

// turnParts gives a react's commands: 12 events.
func turnParts(t testing.TB, id func(string) string) []thread.Part {
	v := events.CommitThread{}
	unmarshal(t, turn(id), &v)
	parts := make([]thread.Part, len(v.Commands))
	for i, c := range v.Commands {
		row, _ := events.LookupCommand(c.Command)
		data, err := row.Decode(c.Data)
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = thread.Part{Name: c.Command, Data: data}
	}
	return parts
}

// BenchmarkRunner lets a runner catch up with a log of commits of 12 events each.
func BenchmarkRunner(b *testing.B) {
	h := newHouse(b)
	const threads, turns = 500, 20
	h.fill(threads, turns)
	end, err := h.log.LastSeq(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for _, p := range h.models.List() {
			if err := h.log.JetStream().DeleteStream(b.Context(), "KV_"+p.Bucket); err != nil {
				b.Fatal(err)
			}
		}
		r := New(h.newLog(), Config{}, zerolog.Nop(), nil)
		if err := r.Ensure(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		_, stop := h.start(r)
		if err := r.Progress().Wait(b.Context(), end); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(end)*float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkVerify compares every document with the log: 500 threads of 240 events
// and about 160 documents each.
func BenchmarkVerify(b *testing.B) {
	h := newHouse(b)
	h.fill(500, 20)
	r, _ := h.run(Config{})
	h.await(r)
	docs := int64(0)
	for b.Loop() {
		report := h.rebuild(true)
		if report.Found != 0 {
			b.Fatalf("%+v", report.Differences[0])
		}
		docs += report.Documents
	}
	b.ReportMetric(float64(docs)/b.Elapsed().Seconds(), "docs/s")
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "threads/s")
}

// BenchmarkQuery asks for one document, and for the last items of a thread.
func BenchmarkQuery(b *testing.B) {
	h := newHouse(b)
	id := h.fill(100, 20)[7]
	r, _ := h.run(Config{})
	h.await(r)
	a := h.asker(QueryConfig{})
	for _, c := range []struct{ name, body string }{
		{"thread.get", `{"threadId":"` + id + `"}`},
		{"item.list", `{"threadId":"` + id + `","order":"desc","limit":20}`},
		{"thread.list", `{"limit":20}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.q.Handle(b.Context(), acme, c.name, []byte(c.body), service.Meta{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
