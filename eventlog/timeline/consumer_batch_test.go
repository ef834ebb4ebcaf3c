package timeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
)

// show puts commits on the timeline: of one to three events each, by turns of a type that a
// consumer takes, of another type, and of another tenant. It returns the events of the first.
func show(t *testing.T, l *eventlog.Log, from, to uint64) (taken []string) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		subject := []string{"acme.T-1.item.created", "acme.T-2.thread.created", "globex.T-3.item.created"}[seq%3]
		for n := range 1 + seq%2 {
			name := fmt.Sprintf("%d.%d", seq, n)
			m := nats.NewMsg("skein.timeline." + subject)
			m.Header.Set(events.HeaderSeq, strconv.FormatUint(seq, 10))
			m.Header.Set(events.HeaderVersion, strconv.FormatUint(n+1, 10))
			m.Data = []byte(name)
			if _, err := l.JetStream().PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if seq%3 == 0 {
				taken = append(taken, name)
			}
		}
	}
	return taken
}

// takenSubjects are those of the events that show returns.
func takenSubjects() []string { return []string{"skein.timeline.acme.*.item.>"} }

func names(b *Batch) (out []string) {
	for _, e := range b.Events {
		out = append(out, string(e.Data))
	}
	return out
}

// Batches of any size, to any process, have each event once and in order. Until one is settled
// nothing else is delivered; one that is returned is delivered again.
func TestConsumers_BatchesKeepTheOrder(t *testing.T) {
	l := logtest.Start(t)
	processes := []Consumers{ConsumersOf(l), ConsumersOf(logtest.Sibling(t, l))}
	logtest.Must(t, processes[0].Put(t.Context(), logtest.Tenant, "c", takenSubjects(), Start{}))
	want := show(t, l, 1, 120)
	var got, tokens []string
	for len(got) < len(want) {
		c := processes[rand.IntN(2)]
		most := 1 + rand.IntN(9)
		b, err := c.NextBatch(t.Context(), logtest.Tenant, "c", BatchSize{Events: most, Bytes: 1 << 20}, time.Minute)
		logtest.Must(t, err)
		if b == nil || len(b.Events) != min(most, len(want)-len(got)) || b.Gap {
			t.Fatalf("after %d of %d: %+v, asked for %d", len(got), len(want), b, most)
		}
		if other, err := c.NextBatch(t.Context(), logtest.Tenant, "c", BatchSize{Events: 5, Bytes: 1 << 20}, 0); other != nil || err != nil {
			t.Fatalf("while %v are not settled: %v, %v", names(b), other, err)
		}
		as := events.SettledDone
		if rand.IntN(3) == 0 {
			as = events.SettledAgain
		} else {
			got = append(got, names(b)...)
			tokens = append(tokens, b.Token)
		}
		logtest.Must(t, c.Settle(t.Context(), logtest.Tenant, "c", b.Token, as))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	// What was settled stays settled, whichever is settled again.
	for _, token := range tokens {
		logtest.Must(t, processes[0].Settle(t.Context(), logtest.Tenant, "c", token, events.SettledDone))
	}
	if b, err := processes[1].NextBatch(t.Context(), logtest.Tenant, "c", BatchSize{Events: 5, Bytes: 1 << 20}, 0); b != nil || err != nil {
		t.Errorf("after the last: %+v, %v", b, err)
	}
	more := show(t, l, 121, 124)
	if d, err := processes[0].Next(t.Context(), logtest.Tenant, "c", time.Minute); err != nil || d == nil || string(d.Data) != more[0] {
		t.Errorf("one event after batches: %+v, %v", d, err)
	}
}

// A batch has the bytes that it may have, and at least one event. Its token names no end that the
// consumer cannot have delivered.
func TestConsumers_BatchIsBounded(t *testing.T) {
	l := logtest.Start(t)
	c := ConsumersOf(l)
	if _, err := c.NextBatch(t.Context(), logtest.Tenant, "c", BatchSize{Events: 5, Bytes: 1}, 0); !errors.Is(err, ErrNoConsumer) {
		t.Errorf("of a consumer that is not there: %v", err)
	}
	logtest.Must(t, c.Put(t.Context(), logtest.Tenant, "c", takenSubjects(), Start{}))
	want := show(t, l, 1, 30)
	for bytes, most := range map[int]int{1: 1, 3 * (entryBytes + 4): 3} {
		b, err := c.NextBatch(t.Context(), logtest.Tenant, "c", BatchSize{Events: 100, Bytes: bytes}, time.Minute)
		if err != nil || b == nil || !slices.Equal(names(b), want[:most]) {
			t.Fatalf("%d bytes: %+v, %v", bytes, b, err)
		}
		first, _, _ := splitToken(b.Token)
		for _, end := range []string{":", ":x", ":-1", ":+9", ":0", ":99999", ":18446744073709551615"} {
			if err := c.Settle(t.Context(), logtest.Tenant, "c", first+end, events.SettledDone); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
				t.Errorf("a batch that ends with %s: %v", end, err)
			}
		}
		logtest.Must(t, c.Settle(t.Context(), logtest.Tenant, "c", b.Token, events.SettledAgain))
	}
}

// A consumer begins where its creation says. It is created again only as it is.
func TestConsumers_BeginAtACommit(t *testing.T) {
	l := logtest.Start(t)
	c := ConsumersOf(l)
	first := func(name string) string {
		t.Helper()
		b, err := c.NextBatch(t.Context(), logtest.Tenant, name, BatchSize{Events: 1, Bytes: 1 << 20}, time.Minute)
		if err != nil || b == nil {
			return fmt.Sprint(err)
		}
		return names(b)[0]
	}
	put := func(name string, from Start) error {
		return c.Put(t.Context(), logtest.Tenant, name, takenSubjects(), from)
	}
	want := show(t, l, 1, 30)
	logtest.Must(t, put("new", Start{New: true}))
	for seq := uint64(1); seq <= 30; seq++ {
		name := fmt.Sprint("from-", seq)
		logtest.Must(t, put(name, Start{Seq: seq}))
		after := slices.IndexFunc(want, func(event string) bool {
			var commit uint64
			_, _ = fmt.Sscanf(event, "%d.", &commit)
			return commit >= seq
		})
		if got := first(name); got != want[after] {
			t.Errorf("from commit %d: %s, want %s", seq, got, want[after])
		}
		logtest.Must(t, c.Delete(t.Context(), logtest.Tenant, name))
	}
	logtest.Must(t, put("end", Start{Seq: 31}))
	more := show(t, l, 31, 33)
	for _, name := range []string{"new", "end"} {
		if got := first(name); got != more[0] {
			t.Errorf("%s: %s, want %s", name, got, more[0])
		}
	}

	starts := map[string]Start{"new": {New: true}, "end": {Seq: 31}, "oldest": {}}
	for name, start := range starts {
		for _, again := range []Start{{}, {New: true}, {Seq: 31}, {Seq: 32}} {
			err := put(name, again)
			var refusal *events.Error
			switch {
			case again == start && err != nil, again != start && name == "oldest" && err == nil && again != (Start{}):
				t.Errorf("%s, created again with %v: %v", name, again, err)
			case again != start && (!errors.As(err, &refusal) || refusal.Code != events.AlreadyExists || refusal.Details.ID != name):
				t.Errorf("%s, created again with %v: %v", name, again, err)
			}
		}
	}
}

// A commit that has left the timeline is refused with the first that is there. A consumer that was
// away while events left says so, until it has settled what came after them.
func TestConsumers_TellWhatHasLeftTheTimeline(t *testing.T) {
	l := logtest.Start(t)
	c := ConsumersOf(l)
	logtest.Must(t, c.Put(t.Context(), logtest.Tenant, "c", takenSubjects(), Start{}))
	show(t, l, 1, 6)
	next := func() *Batch {
		t.Helper()
		b, err := c.NextBatch(t.Context(), logtest.Tenant, "c", BatchSize{Events: 2, Bytes: 1 << 20}, time.Minute)
		if err != nil || b == nil {
			t.Fatalf("%v, %v", b, err)
		}
		return b
	}
	settle := func(b *Batch, as events.Settlement) {
		t.Helper()
		logtest.Must(t, c.Settle(t.Context(), logtest.Tenant, "c", b.Token, as))
	}
	settle(next(), events.SettledDone)
	settle(next(), events.SettledDone)
	expire(t, l)
	show(t, l, 7, 9)
	b := next()
	if b.Gap || names(b)[0] != "9.0" {
		t.Errorf("it had received what has left: %v %v", b.Gap, names(b))
	}
	settle(b, events.SettledDone)
	show(t, l, 10, 19)
	expire(t, l)
	show(t, l, 20, 30)
	for _, as := range []events.Settlement{events.SettledBusy, events.SettledAgain, events.SettledDone} {
		if as != events.SettledAgain {
			b = next()
		}
		if !b.Gap || names(b)[0] != "21.0" {
			t.Errorf("some have left: %v %v", b.Gap, names(b))
		}
		settle(b, as)
	}
	if b := next(); b.Gap {
		t.Errorf("after it was settled: %v", names(b))
	}

	err := c.Put(t.Context(), logtest.Tenant, "late", takenSubjects(), Start{Seq: 19})
	var refusal *events.Error
	if !errors.As(err, &refusal) || refusal.Code != events.InvalidRequest || refusal.Details.Seq != 20 {
		t.Fatalf("from commit 19, which has left: %v", err)
	}
	logtest.Must(t, c.Put(t.Context(), logtest.Tenant, "late", takenSubjects(), Start{Seq: 20}))
}

// expire lets everything leave the timeline by its age.
func expire(t *testing.T, l *eventlog.Log) {
	t.Helper()
	name := l.Config().Names.Stream(assets.TimelineStream)
	stream, err := l.JetStream().Stream(t.Context(), name)
	logtest.Must(t, err)
	was := stream.CachedInfo().Config
	short := was
	short.MaxAge, short.Duplicates = 100*time.Millisecond, 100*time.Millisecond
	_, err = l.JetStream().UpdateStream(t.Context(), short)
	logtest.Must(t, err)
	for {
		info, err := stream.Info(t.Context())
		logtest.Must(t, err)
		if info.State.Msgs == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, err = l.JetStream().UpdateStream(t.Context(), was)
	logtest.Must(t, err)
}
