package commands

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// What a thread refuses by its state, such as more effects than it may have, is
// recorded as refused, and holds up nothing behind it.
func TestSubmit_QueueFullIsRejected(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	many := strings.Repeat(`,{"command":"effect.schedule","data":{"name":"later","delayMs":3600000}}`, 200)[1:]
	for range events.MaxEffects / 200 {
		must(t, w.d, "thread.commit", on(id, `{"commands":[`+many+`]}`))
	}
	w.submit("effect.schedule", on(id, `{"name":"too-many","delayMs":3600000}`))
	w.submit("item.create", on(id, item("itm_after")))
	stop := w.work(w.d)
	w.empty()
	stop()
	list := w.rejections(id)
	if len(list) != 1 || list[0].Code != events.QueueFull || list[0].Command != "effect.schedule" {
		t.Errorf("recorded as refused: %+v", list)
	}
	if got := w.itemsOf(id); !slices.Equal(got, []string{"itm_after"}) {
		t.Errorf("the items are %v", got)
	}
}

// A tenant whose commands can never be done now, and has more of them than are
// read ahead, delays no other tenant.
func TestSubmit_BacklogOfOneTenantDelaysNoOther(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	// Contents cannot be kept here, and that is unavailable for ever.
	for i := range 2 * submitInHand {
		w.submitAs("hog", "file.write", on(newThread, `{"path":"/`+strconv.Itoa(i)+`","content":"aGVsbG8="}`))
	}
	w.submit("item.create", on(id, item("itm_1")))
	stop := w.work(w.d)
	defer stop()
	w.until("the command of the other tenant", func() bool { return slices.Equal(w.itemsOf(id), []string{"itm_1"}) })
	if s, err := w.log.JetStream().Stream(t.Context(), "SKEIN_COMMANDS"); err != nil || s.CachedInfo().State.Msgs < 2*submitInHand {
		t.Fatalf("the backlog has gone: %v", err)
	}
	w.submitAs("third", "thread.create", `{"commandId":"c-1"}`) // a tenant that comes later
	w.until("the command of a new tenant", func() bool {
		last, err := w.log.Last(t.Context(), "third", events.DeriveThreadID("third", "c-1"))
		return err == nil && last != nil
	})
}

func (w *world) submitAs(tenant, name, body string) {
	w.t.Helper()
	if _, err := w.log.JetStream().Publish(w.t.Context(), "skein.submit."+tenant+"."+name, []byte(body)); err != nil {
		w.t.Fatal(err)
	}
}

// Submitted commands of a tenant have its share of turns, and those of one that floods
// a fourth of that; alone it has all.
func TestTurns_ShareOfTheTenant(t *testing.T) {
	flooding := make(chan struct{})
	floods := quota.NewFloods(func(string) { close(flooding) })
	activity := &quota.Activity{}
	d := &Dispatcher{cfg: Config{Fair: quota.Fair{Running: 8, Activity: activity, Floods: floods}}}
	want := func(when string, most int) {
		t.Helper()
		if got := d.submittedShare("hog"); got != most {
			t.Errorf("%s: %d at the same time, want %d", when, got, most)
		}
	}
	want("alone", 0)
	activity.Note("quiet", time.Now())
	want("with another tenant", 8)
	now := time.Now()
	for flooded := false; !flooded; {
		floods.Note("hog", now)
		select {
		case <-flooding:
			flooded = true
		default:
		}
	}
	activity.Note("quiet", time.Now())
	want("flooding", 2)
	limit := 2
	turns := newShareLimiter(func() int { return limit })
	turns.acquire()
	turns.acquire()
	third := make(chan struct{})
	go func() {
		turns.acquire()
		close(third)
	}()
	select {
	case <-third:
		t.Error("three turns were taken, want two")
	case <-time.After(20 * time.Millisecond):
	}
	turns.release()
	<-third
}
