package effects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
)

// stateOf is a thread's state in these tests.
type stateOf struct {
	runtime.ThreadState
	id string
	x  *runtime.Execution
}

func (s stateOf) ThreadID() string { return s.id }

func (s stateOf) Execution() events.ExecutionState { return s.x }

// SA-22, SA-70, SA-71, SA-72, SA-73, SA-75, SA-76, SA-80, SA-81, C-28, C-38: an effect
// runs outside the conversation, which continues meanwhile, by its name, with its
// arguments and a thread state, as a flow of its own.
func TestEffect_RunsOutsideConversation(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	told := make(chan *runtime.EffectInput, 8)
	one := p.process(runtime.Effects{"remind": tell(told)}, Config{State: func(tenant, id string, x *runtime.Execution) runtime.ThreadState {
		return stateOf{id: tenant + "/" + id, x: x}
	}})
	p.do(one, "thread.commit", `{"commands":[{"command":"thread.status","data":{"to":"streaming"}},
		{"command":"item.create","data":{"item":{"id":"itm_1","type":"message","role":"user","content":[]}}},
		{"command":"execution.create","data":{"id":"exe_1","triggerItemId":"itm_1"}}]}`)
	id := p.schedule(one, "remind", `,"args":{"about":"order 42"},"delayMs":300`)
	other := p.schedule(one, "remind", "")
	p.do(one, "thread.update", `{"title":"meanwhile"}`)
	first, second := next(t, told), next(t, told)
	if first.EffectID != other || string(first.Args) != "{}" {
		t.Errorf("the one without a delay: %+v", first)
	}
	if second.EffectID != id || second.Name != "remind" || string(second.Args) != `{"about":"order 42"}` || second.FlowID != id || second.Tenant != acme ||
		second.ThreadID != p.thread || second.State.ThreadID() != acme+"/"+p.thread || second.Attempt != 1 || second.Firing != 1 || second.Key != id+".1" {
		t.Errorf("it received %+v", second)
	}
	p.tells(id, "scheduled", "started 1.1", "completed")
	p.tells(other, "scheduled", "started 1.1", "completed")
	// The effects changed nothing in the conversation, and it did not wait for them: 2
	// events created the thread, 6 are above, each effect started and ended.
	if last := p.do(one, "execution.status", `{"executionId":"exe_1","to":"completed"}`); last.Version != 2+3+2+1+4+1 {
		t.Errorf("the thread is at version %d", last.Version)
	}
	p.do(one, "thread.status", `{"to":"open"}`)
	if left := p.pending(""); len(left) != 0 {
		t.Errorf("pending after they have run: %+v", left)
	}
}

// SA-71, SA-77: none starts before its time, and none long after it. The delay is
// reported.
func TestEffects_OnTime(t *testing.T) {
	p := newPlant(t)
	const n = 200
	type begin struct {
		at   time.Time
		late time.Duration
	}
	begun := make(chan begin, n)
	one := p.process(runtime.Effects{"x": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		begun <- begin{in.ScheduledAt, time.Since(in.ScheduledAt)}
		return nil
	})}, Config{})
	for i := range n {
		p.schedule(one, "x", fmt.Sprintf(`,"delayMs":%d`, 500+i*13))
	}
	timers := natstest.MeasureLateness(t)
	begins := make([]begin, n)
	for i := range begins {
		begins[i] = next(t, begun)
	}
	slices.SortFunc(begins, func(a, b begin) int { return a.at.Compare(b.at) })
	// The server's own scheduler looks four times a second: of any 40 in a row, half a
	// second, one would be 200 ms late. The machine may be loaded, but not all the
	// time; and if it is, plain timers are late too, of which some have a part in each.
	best, over := time.Hour, time.Hour
	for i := 0; i+40 <= n; i += 10 {
		some := begins[i : i+40]
		late := slices.MaxFunc(some, func(a, b begin) int { return cmp.Compare(a.late, b.late) }).late
		best = min(best, late)
		over = min(over, late-5*timers.Most(some[0].at, some[39].at.Add(late)))
	}
	slices.SortFunc(begins, func(a, b begin) int { return cmp.Compare(a.late, b.late) })
	t.Logf("late: p50 %v, p99 %v, at most %v; at most %v of the best 40 in a row", begins[n/2].late, begins[n*99/100].late, begins[n-1].late, best)
	if begins[0].late < 0 {
		t.Errorf("one was begun %v before its time", -begins[0].late)
	}
	if over > 180*time.Millisecond {
		t.Errorf("of any 40 in a row one was %v late, or %v more than can be of the machine", best, over)
	}
}

// SA-77: without a delay it runs immediately, and not at a scheduler's next look.
func TestEffect_WithoutDelayRunsImmediately(t *testing.T) {
	p := newPlant(t)
	told := make(chan *runtime.EffectInput, 1)
	one := p.process(runtime.Effects{"x": tell(told)}, Config{})
	took := make([]time.Duration, 40)
	for i := range took {
		began := time.Now()
		p.schedule(one, "x", []string{"", `,"delayMs":0`, `,"at":"2020-01-01T00:00:00Z"`}[i%3])
		next(t, told)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	t.Logf("from the command to the effect: p25 %v, p50 %v, at most %v", took[len(took)/4], took[len(took)/2], took[len(took)-1])
	// An effect that waits for a look four times a second waits 250 ms each time, since
	// each starts when the one before has ended. The machine may be loaded.
	if took[len(took)/4] > 200*time.Millisecond {
		t.Errorf("three quarters of them took more than %v", took[len(took)/4])
	}
}

// SA-78, SA-79, SA-80, SA-81, SA-82, SA-83, SA-84, SA-86: pending effects are listed
// with their times in microseconds, the earliest due first; a name filters, and none is
// an empty list; what has run or was removed is not listed.
func TestEffects_ListPending(t *testing.T) {
	p := newPlant(t)
	if none := p.pending(""); none == nil || len(none) != 0 {
		t.Errorf("of a thread without effects: %#v", none)
	}
	release, running := make(chan struct{}), make(chan *runtime.EffectInput, 1)
	one := p.process(runtime.Effects{"slow": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		running <- in
		<-release
		return nil
	})}, Config{})
	later := p.schedule(one, "remind", `,"args":{"n":1},"delayMs":1800000`)
	sooner := p.schedule(one, "tidy", `,"delayMs":900000`)
	removed := p.schedule(one, "remind", `,"delayMs":60000`)
	hourly := p.schedule(one, "tidy", `,"cron":"@yearly"`)
	ran := p.schedule(one, "slow", "")
	p.do(one, "effect.cancel", `{"effectId":"`+removed+`"}`)
	next(t, running)
	ids := func(list []events.ScheduledEffect) string {
		var got []string
		for _, e := range list {
			got = append(got, e.ID)
		}
		return strings.Join(got, " ")
	}
	all := p.pending("")
	if want := strings.Join([]string{sooner, later, hourly}, " "); ids(all) != want {
		t.Errorf("pending are %s, want %s (%s runs, %s was removed)", ids(all), want, ran, removed)
	}
	for _, e := range all {
		if _, err := uuid.Parse(e.ID); err != nil || e.ThreadID != p.thread {
			t.Errorf("%+v", e)
		}
	}
	if e := all[1]; e.Name != "remind" || string(e.Args) != `{"n":1}` || e.ScheduledAt != e.CreatedAt+1800000*1000 || time.Since(time.UnixMicro(e.CreatedAt)) > testPatience {
		t.Errorf("%s", marshal(t, e))
	}
	if got := p.pending("tidy"); ids(got) != sooner+" "+hourly {
		t.Errorf("named tidy: %s", ids(got))
	}
	if got := p.pending("nobody"); got == nil || len(got) != 0 {
		t.Errorf("of a name that none has: %#v", got)
	}
	close(release)
	p.tells(ran, "scheduled", "started 1.1", "completed")
	if got := p.pending("slow"); len(got) != 0 {
		t.Errorf("after it has run: %+v", got)
	}
}

// SA-85, SA-86: a cancel and a firing at the same moment: one of the two happens, and
// the reply of the cancel says which.
func TestEffect_CancelRacesFiring(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	const n = 80
	var mu sync.Mutex
	ran := map[string]int{}
	one := p.process(runtime.Effects{"x": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		mu.Lock()
		defer mu.Unlock()
		ran[in.EffectID]++
		return nil
	})}, Config{})
	other := p.process(nil, Config{}) // cancels with a state of its own
	ids := make([]string, n)
	due := time.Now().Add(1200 * time.Millisecond)
	for i := range ids {
		ids[i] = p.schedule(one, "x", `,"at":"`+due.UTC().Format("2006-01-02T15:04:05.000000Z")+`"`)
	}
	cancelled := make([]bool, n)
	var cancelling sync.WaitGroup
	for i, id := range ids {
		by := []*process{one, other}[i%2]
		cancelling.Go(func() {
			time.Sleep(time.Until(due.Add(time.Duration(i-n/2) * time.Millisecond)))
			reply := p.do(by, "effect.cancel", `{"effectId":"`+id+`"}`)
			cancelled[i] = reply.Result != nil && reply.Result.Cancelled
		})
	}
	cancelling.Wait()
	count := 0
	for i, id := range ids {
		if cancelled[i] {
			count++
			p.tells(id, "scheduled", "cancelled")
		} else {
			p.tells(id, "scheduled", "started 1.1", "completed")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i, id := range ids {
		if want := map[bool]int{true: 0, false: 1}[cancelled[i]]; ran[id] != want {
			t.Errorf("effect %d ran %d times; cancelled: %v", i, ran[id], cancelled[i])
		}
	}
	t.Logf("%d of %d were cancelled in time", count, n)
}

// Two workers, and every timer set twice: each effect runs once.
func TestEffect_TwoWorkersRunItOnce(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	const n = 100
	told := make(chan *runtime.EffectInput, 4*n)
	one := p.process(runtime.Effects{"x": tell(told)}, Config{Concurrency: 4})
	p.process(runtime.Effects{"x": tell(told)}, Config{Concurrency: 4})
	at := time.Now().Add(1500 * time.Millisecond).UTC()
	var ids []string
	for range n {
		id := p.schedule(one, "x", `,"at":"`+at.Format("2006-01-02T15:04:05.000000Z")+`"`)
		ids = append(ids, id)
		due := dueEffect{Name: "x", At: events.TimeOf(at), Firing: 1, Attempt: 1}
		for range 2 { // as if it had fired twice already
			soon := due
			soon.At = events.TimeOf(time.Now())
			if err := putEffect(t.Context(), p.log, time.Now, acme, p.thread, id, soon); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := map[string]int{}
	for range n {
		seen[next(t, told).EffectID]++
	}
	for _, id := range ids {
		p.tells(id, "scheduled", "started 1.1", "completed")
		if seen[id] != 1 {
			t.Errorf("effect %s ran %d times", id, seen[id])
		}
	}
	p.quiet()
	none(t, told)
}

// quiet waits until nothing is due.
func (p *plant) quiet() {
	p.Helper()
	left := map[string]struct{}{}
	p.until(func() bool {
		var err error
		if left, err = queues.TimersOf(p.log).Names(p.Context()); err != nil {
			p.Fatal(err)
		}
		return len(left) == 0
	}, func() string { return fmt.Sprintf("%d timers are left", len(left)) })
}

// SA-86: pending effects survive a restart of the server and of all processes; what was
// missed meanwhile runs then, once.
func TestEffects_SurviveRestart(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	one := p.process(nil, Config{})
	missed := p.schedule(one, "x", `,"delayMs":1200`)
	ahead := p.schedule(one, "x", `,"delayMs":5000,"args":{"n":2}`)
	late := time.Now().Add(1300 * time.Millisecond)
	one.stop() // which sets the timers
	p.folding()
	p.server.Shutdown()
	time.Sleep(time.Until(late)) // the time of one passes while nothing runs
	p.up()
	told := make(chan *runtime.EffectInput, 8)
	p.process(runtime.Effects{"x": tell(told)}, Config{})
	ran := map[string]bool{}
	for range 2 { // the first before the other, unless the restart lasts until both are due
		in := next(t, told)
		ran[in.EffectID] = true
		if in.EffectID == ahead && string(in.Args) != `{"n":2}` || time.Since(in.ScheduledAt) < 0 {
			t.Errorf("it ran with %+v", in)
		}
	}
	if !ran[missed] || !ran[ahead] {
		t.Errorf("%v ran, want %s and %s", ran, missed, ahead)
	}
	p.tells(missed, "scheduled", "started 1.1", "completed")
	p.tells(ahead, "scheduled", "started 1.1", "completed")
	p.quiet()
	none(t, told)
}

// A failed effect is retried as often as permitted, and each attempt is recorded with
// its error: errors, panics, timeouts, unknown names.
func TestEffects_Retry(t *testing.T) {
	p := newPlant(t)
	var list []int
	asked := 0
	one := p.process(encoded(runtime.Effects{
		"third time": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
			if in.Attempt < 3 {
				return errors.New("the mail server did not answer")
			}
			return nil
		}),
		"taken": runtime.EffectFunc(func(context.Context, *runtime.EffectInput) error {
			if asked++; asked == 1 {
				return &runtime.RetryError{NotMade: true, Err: errors.New("no worker is there")}
			}
			return nil
		}),
		"panics":  runtime.EffectFunc(func(context.Context, *runtime.EffectInput) error { panic("a secret") }),
		"crashes": runtime.EffectFunc(func(context.Context, *runtime.EffectInput) error { list[0]++; return nil }),
		"hangs": runtime.EffectFunc(func(ctx context.Context, _ *runtime.EffectInput) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}),
		"later": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
			if in.Attempt == 1 {
				return &runtime.RetryError{After: 700 * time.Millisecond, Err: errors.New("slow down")}
			}
			if early := time.Until(in.ScheduledAt); early > 0 {
				return fmt.Errorf("%v early", early)
			}
			return nil
		}),
	}), Config{Timeout: 300 * time.Millisecond})
	few := `,"retries":%d,"backoffMs":10`
	id := p.schedule(one, "third-time", fmt.Sprintf(few, 2))
	p.tells(id, "scheduled", "started 1.1", "failed 1.1 the mail server did not answer", "started 1.2", "failed 1.2 the mail server did not answer", "started 1.3", "completed")
	id = p.schedule(one, "panics", fmt.Sprintf(few, 0))
	p.tells(id, "scheduled", "started 1.1", "failed 1.1 the effect panicked (final)")
	id = p.schedule(one, "crashes", fmt.Sprintf(few, 1))
	crash := "the effect panicked: runtime error: index out of range [0] with length 0"
	p.tells(id, "scheduled", "started 1.1", "failed 1.1 "+crash, "started 1.2", "failed 1.2 "+crash+" (final)")
	id = p.schedule(one, "hangs", fmt.Sprintf(few, 0))
	p.tells(id, "scheduled", "started 1.1", "failed 1.1 the effect took longer than 300ms: context deadline exceeded (final)")
	id = p.schedule(one, "nobody", fmt.Sprintf(few, 1))
	unknown := `no effect "nobody" is registered in the workers that received it; register it, or schedule a registered one`
	p.tells(id, "scheduled", "started 1.1", "failed 1.1 "+unknown, "started 1.2", "failed 1.2 "+unknown+" (final)")
	id = p.schedule(one, "taken", fmt.Sprintf(few, 0)) // an effect that no process received uses up no attempt
	p.tells(id, "scheduled", "started 1.1", "failed 1.1 no worker is there", "started 1.1", "completed")
	began := time.Now()
	id = p.schedule(one, "later", fmt.Sprintf(few, 1))
	p.tells(id, "scheduled", "started 1.1", "failed 1.1 slow down", "started 1.2", "completed")
	if took := time.Since(began); took < 700*time.Millisecond {
		t.Errorf("tried again after %v", took)
	}
	p.quiet()
	if left := p.pending(""); len(left) != 0 {
		t.Errorf("pending: %+v", left)
	}
}

// encoded encodes the names of effects as valid names.
func encoded(e runtime.Effects) runtime.Effects {
	out := runtime.Effects{}
	for name, effect := range e {
		out[strings.ReplaceAll(name, " ", "-")] = effect
	}
	return out
}

// A worker that died is replaced; one that was only disconnected, and finishes later,
// ends nothing any more.
func TestEffectWorker_ReplacedAfterDeath(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	entered, leave := make(chan *runtime.EffectInput, 1), make(chan struct{})
	first := p.process(runtime.Effects{"x": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		entered <- in
		<-leave
		return nil
	})}, Config{AckWait: 5 * time.Second})
	id := p.schedule(first, "x", "")
	key := next(t, entered).Key
	first.wires.Conn().Close() // the effect is no longer kept alive
	told := make(chan *runtime.EffectInput, 8)
	began := time.Now()
	p.process(runtime.Effects{"x": tell(told)}, Config{AckWait: 5 * time.Second})
	in := next(t, told)
	t.Logf("taken over after %v", time.Since(began))
	if in.EffectID != id || in.Attempt != 2 || in.Key != key {
		t.Errorf("taken over as %+v, the key was %s", in, key)
	}
	lost := []string{"scheduled", "started 1.1", "failed 1.1 the worker that ran it was lost", "started 1.2", "completed"}
	p.tells(id, lost...)
	close(leave)
	first.stop()
	p.tells(id, lost...)
	p.quiet()
	none(t, told)
}

// An effect that runs longer than a worker may be silent is not taken by another.
func TestEffectWorker_KeepsLongEffectAlive(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	told := make(chan *runtime.EffectInput, 8)
	const silent = 5 * time.Second
	effects := runtime.Effects{"x": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		told <- in
		time.Sleep(silent + 2*time.Second)
		return nil
	})}
	one := p.process(effects, Config{AckWait: silent})
	p.process(effects, Config{AckWait: silent})
	timers := natstest.MeasureLateness(t)
	for { // a worker that the machine kept from saying a word is silent
		began := time.Now()
		id := p.schedule(one, "x", "")
		p.until(func() bool { story := p.story(id); return story[len(story)-1] == "completed" }, func() string { return fmt.Sprint(p.story(id)) })
		p.quiet()
		if timers.Most(began, time.Now()) < silent/5 {
			p.tells(id, "scheduled", "started 1.1", "completed")
			next(t, told)
			none(t, told)
			return
		}
		for len(told) > 0 {
			<-told
		}
	}
}

// A worker that is stopped lets running effects finish, starts no more, and leaves to
// others what does not end in time.
func TestEffectWorker_Drains(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	entered, leave := make(chan *runtime.EffectInput, 8), make(chan struct{})
	var clock atomic.Pointer[time.Time]
	tick := func() { now := time.Now(); clock.Store(&now) }
	tick()
	one := p.process(runtime.Effects{
		"ends": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
			entered <- in
			<-leave
			return nil
		}),
		"hangs": runtime.EffectFunc(func(ctx context.Context, in *runtime.EffectInput) error {
			entered <- in
			<-ctx.Done()
			return ctx.Err()
		}),
	}, Config{Drain: 500 * time.Millisecond, Now: func() time.Time { return *clock.Load() }})
	ends, hangs := p.schedule(one, "ends", ""), p.schedule(one, "hangs", "")
	tick()
	held := p.schedule(one, "ends", `,"delayMs":1000`)
	next(t, entered)
	next(t, entered)
	close(leave)
	one.stop()
	p.tells(ends, "scheduled", "started 1.1", "completed")
	told := make(chan *runtime.EffectInput, 8)
	p.process(runtime.Effects{"ends": tell(told), "hangs": tell(told)}, Config{})
	for range 2 {
		if in := next(t, told); in.EffectID != held && in.EffectID != hangs {
			t.Errorf("ran %+v", in)
		}
	}
	p.tells(held, "scheduled", "started 1.1", "completed")
	p.tells(hangs, "scheduled", "started 1.1", "failed 1.1 the worker that ran it was lost", "started 1.2", "completed")
}

// The sweep sets timers that were lost: of commits of a process that died before it set
// them, and of a worker's messages when all timers were lost. If none are lost, it sets
// none.
func TestSweep(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	dead := p.process(nil, Config{})
	dead.stop() // it sets its timers no more
	soon := p.schedule(dead, "x", `,"args":{"n":1}`)
	ahead := p.schedule(dead, "x", `,"delayMs":1500`)
	had := p.schedule(dead, "x", "")
	if _, err := dead.d.Inside(t.Context(), acme, p.thread, "w", "effect.start", thread.StartEffect{ID: had, Firing: 1, Attempt: 1, Claim: 999}); err != nil {
		t.Fatal(err)
	}
	gone := p.schedule(dead, "x", `,"delayMs":1000`)
	p.do(dead, "effect.cancel", `{"effectId":"`+gone+`"}`)
	if n := len(p.pending("")); n != 2 { // and the read model shows it
		t.Fatalf("%d are pending", n)
	}
	told := make(chan *runtime.EffectInput, 8)
	one := p.process(runtime.Effects{"x": tell(told)}, Config{})
	if n, err := one.timers.Sweep(t.Context()); n != 3 || err != nil {
		t.Fatalf("%d timers were put, %v; want 3", n, err)
	}
	attempts := map[string]int64{}
	for range 3 {
		in := next(t, told)
		attempts[in.EffectID] = in.Attempt
		if in.EffectID == soon && string(in.Args) != `{"n":1}` {
			t.Errorf("it received %+v", in)
		}
	}
	if attempts[soon] != 1 || attempts[ahead] != 1 || attempts[had] != 2 {
		t.Errorf("attempts %v", attempts)
	}
	p.tells(had, "scheduled", "started 1.1", "failed 1.1 the worker that ran it was lost", "started 1.2", "completed")
	p.tells(ahead, "scheduled", "started 1.1", "completed")
	p.schedule(one, "x", `,"delayMs":60000`)
	p.until(func() bool {
		have, err := queues.TimersOf(p.log).Names(t.Context())
		return err == nil && len(have) == 1
	}, func() string { return "the timer never came" })
	p.pending("")
	if n, err := one.timers.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("where nothing is lost %d timers were put, %v", n, err)
	}
	none(t, told)
}

// A cancel removes the timer, and so does the deletion of the thread.
func TestEffectTimers_RemovedByCancelAndDelete(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	one := p.process(nil, Config{})
	timers := func(want int) {
		t.Helper()
		p.until(func() bool {
			have, err := queues.TimersOf(p.log).Names(t.Context())
			return err == nil && len(have) == want
		},
			func() string { return fmt.Sprintf("there are never %d timers", want) })
	}
	id := p.schedule(one, "x", `,"delayMs":60000`)
	p.schedule(one, "x", `,"delayMs":60000`)
	p.schedule(one, "x", `,"everyMs":60000`)
	timers(3)
	p.do(one, "effect.cancel", `{"effectId":"`+id+`"}`)
	timers(2)
	p.do(one, "thread.delete", `{}`)
	timers(0)
}

// A repeated effect runs on its schedule; what was missed while no worker ran, runs
// once; a cancel ends it.
func TestEffects_Repeat(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	dead := p.process(nil, Config{})
	id := p.schedule(dead, "x", `,"everyMs":1000`)
	plan := time.UnixMicro(p.pending("")[0].ScheduledAt)
	time.Sleep(time.Until(plan.Add(2500 * time.Millisecond))) // three firings are missed
	told := make(chan *runtime.EffectInput, 16)
	p.process(runtime.Effects{"x": tell(told)}, Config{})
	for firing := int64(1); firing <= 3; firing++ {
		in := next(t, told)
		if in.Firing != firing || in.Attempt != 1 || in.Key != fmt.Sprint(id, ".", firing) {
			t.Errorf("firing %d: %+v", firing, in)
		}
		missed := in.ScheduledAt.Sub(plan)
		if firing == 1 && missed != 0 || firing > 1 && (missed < 3*time.Second || missed%time.Second != 0) {
			t.Errorf("firing %d is planned %v after the first", firing, missed)
		}
	}
	if left := p.pending("x"); len(left) != 1 || left[0].ID != id {
		t.Errorf("pending between two firings: %+v", left)
	}
	if reply := p.do(dead, "effect.cancel", `{"effectId":"`+id+`"}`); reply.Result == nil || !reply.Result.Cancelled {
		t.Errorf("cancelling answered %+v", reply)
	}
	if left := p.pending(""); len(left) != 0 {
		t.Errorf("pending after the cancel: %+v", left)
	}
	p.quiet()
}
