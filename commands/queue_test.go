package commands

import (
	"context"
	"testing"

	"github.com/skein-threads/skein/events"
)

// jobsOf admits requests, to be handed to one round.
func jobsOf(t *testing.T, d *Dispatcher, requests ...[2]string) []*job {
	t.Helper()
	var jobs []*job
	for _, r := range requests {
		c, err := d.admit(tenant, r[0], []byte(r[1]), Meta{})
		if err != nil {
			t.Fatal(err)
		}
		j := commandJob(t.Context(), requested, c)
		j.done = make(chan jobResult, 8) // so that a second answer is noticed
		jobs = append(jobs, j)
	}
	return jobs
}

// rounds does the jobs as a thread's goroutine does.
func rounds(d *Dispatcher, id string, jobs []*job) {
	e := d.cache.acquire(tenant, id)
	defer d.cache.release(e)
	for len(jobs) > 0 {
		jobs = d.runRound(e, jobs)
	}
}

const newThread = "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"

// What a refused command would have made is in no commit, also where it was
// refused for its key alone.
func TestRefusedKeysLeaveNothing(t *testing.T) {
	w := newWorld(t, Config{})
	must(t, w.d, "thread.create", `{"data":{"key":"a"}}`)
	must(t, w.d, "thread.create", `{"data":{"key":"b"}}`)
	jobs := jobsOf(t, w.d,
		[2]string{"thread.create", on(newThread, `{"key":"a"}`)},
		[2]string{"thread.create", on(newThread, `{"key":"b"}`)},
		[2]string{"item.create", on(newThread, hello)},
	)
	rounds(w.d, newThread, jobs)
	for i, code := range []events.Code{events.AlreadyExists, events.AlreadyExists, events.NotFound} {
		if a := <-jobs[i].done; a.err == nil || events.AsError(a.err).Code != code {
			t.Errorf("job %d: %+v, %v; want %s", i, a.reply, a.err, code)
		}
	}
	if list := w.commits(newThread); len(list) > 0 {
		t.Errorf("the log has %d commits of the thread, the first with %s", len(list), list[0].Events[0].Type)
	}
}

// Each job is answered once, also when the key that one of them claims moves
// again and again while they are being stored.
func TestEachJobIsAnsweredOnce(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	ctx, stop := context.WithCancel(t.Context())
	churned := make(chan struct{})
	go func() { // claims the key and releases it
		defer close(churned)
		for ctx.Err() == nil {
			if r, err := other.Do(context.WithoutCancel(ctx), tenant, "thread.create", []byte(`{"data":{"key":"k"}}`), Meta{}); err == nil {
				_, _ = other.Do(context.WithoutCancel(ctx), tenant, "thread.delete", []byte(on(r.ThreadID, `{}`)), Meta{})
			}
		}
	}()
	won := 0
	for range 60 {
		id := events.DeriveThreadID(tenant, newCommandID())
		jobs := jobsOf(t, w.d, [2]string{"item.create", on(id, hello)}, [2]string{"thread.create", on(id, `{"key":"k"}`)})
		rounds(w.d, id, jobs)
		for i, j := range jobs {
			a := <-j.done
			if len(j.done) > 0 {
				t.Fatalf("job %d was answered twice: %+v %v, then %+v", i, a.reply, a.err, <-j.done)
			}
			if code := events.AsError(a.err).Code; i == 0 && code != events.NotFound || i == 1 && a.err != nil && code != events.AlreadyExists {
				t.Fatalf("job %d: %v", i, a.err)
			}
			if i == 1 && a.err == nil {
				won++
				must(t, w.d, "thread.delete", on(id, `{}`))
			}
		}
	}
	stop()
	<-churned
	t.Logf("%d of 60 took the key", won)
	w.commits(events.KeyAggregate("k"))
}

// Nothing is refused because of what is not stored yet, and may never be: such a
// command is decided again when that is. Found by dev/sim.
func TestNoRefusalOnWhatIsNotStored(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	item := on(id, `{"item":{"id":"itm_1","type":"message","role":"user","content":[]}}`)
	for name, jobs := range map[string][]*job{
		"first":       jobsOf(t, w.d, [2]string{"item.create", item}, [2]string{"item.create", item}, [2]string{"item.create", on(id, hello)}),
		"after other": jobsOf(t, w.d, [2]string{"thread.create", on(id, `{}`)}, [2]string{"item.create", item}, [2]string{"item.create", item}, [2]string{"item.create", on(id, hello)}),
	} {
		e := w.d.cache.acquire(tenant, id)
		if err := w.d.load(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		r := w.d.draft(e, jobs, nil) // and it is never stored
		w.d.cache.release(e)
		n := len(jobs)
		if len(r.taken) != 2 || r.taken[0] != jobs[n-3] || r.taken[1] != jobs[n-1] || len(r.rest) != 1 || r.rest[0] != jobs[n-2] {
			t.Errorf("%s: %d are taken and %d left", name, len(r.taken), len(r.rest))
		}
		for i, j := range jobs[n-3:] {
			if len(j.done) > 0 {
				t.Errorf("%s: job %d has an answer: %+v", name, i, <-j.done)
			}
		}
	}
	jobs := jobsOf(t, w.d, [2]string{"item.create", item}, [2]string{"item.create", item})
	rounds(w.d, id, jobs)
	if a, b := <-jobs[0].done, <-jobs[1].done; a.err != nil || events.AsError(b.err).Code != events.AlreadyExists {
		t.Errorf("%v, then %v", a.err, b.err)
	}
}

// held is a context that is asked for its end only when it is let go.
type held struct {
	context.Context
	free chan struct{}
}

func (h held) Err() error {
	<-h.free
	return h.Context.Err()
}

// Who works for others has its own answer as soon as it is there: what is left
// goes on without it.
func TestQueue_WorkForOthersDoesNotDelay(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	jobs := jobsOf(t, w.d, [2]string{"item.create", with("one", id, hello)}, [2]string{"item.create", with("one", id, hello)})
	other := held{t.Context(), make(chan struct{})}
	jobs[1].ctx = other // the same command again is not in the same commit
	e := w.d.cache.acquire(tenant, id)
	e.mu.Lock()
	e.busy = true
	e.mu.Unlock()
	w.d.runJobs(e, jobs, jobs[0])
	if len(jobs[0].done) != 1 || len(jobs[1].done) != 0 {
		t.Fatalf("%d answers of its own, %d of the other", len(jobs[0].done), len(jobs[1].done))
	}
	close(other.free)
	first, again := <-jobs[0].done, <-jobs[1].done
	if first.err != nil || again.err != nil || first.reply.Seq != again.reply.Seq {
		t.Errorf("%+v, then %+v", first, again)
	}
	w.until("the thread to be free", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return !e.busy
	})
}
