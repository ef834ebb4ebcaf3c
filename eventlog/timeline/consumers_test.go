package timeline

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
)

// A token of a delivery is the acknowledgement of that consumer, as the server
// writes it, and nothing that only looks like it.
func TestConsumers_SettleParsesTokenStrictly(t *testing.T) {
	l := logtest.Start(t)
	if err := ConsumersOf(l).Put(t.Context(), logtest.Tenant, "c", []string{"skein.timeline.acme.>"}, Start{}); err != nil {
		t.Fatal(err)
	}
	const end = ".1.2.3.1700000000000000000.4"
	for token, good := range map[string]bool{
		"$JS.ACK.SKEIN_TIMELINE.acme=c" + end:                                true,
		"$JS.ACK.skein.AbC12345.SKEIN_TIMELINE.acme=c" + end:                 true,
		"$JS.ACK._.AbC12345.SKEIN_TIMELINE.acme=c" + end:                     true,
		"$JS.ACK.SKEIN_TIMELINE.acme=c.1.1.1.1":                              false,
		"$JS.ACK.SKEIN_TIMELINE.acme=c.a.b.c.d.e":                            false,
		"$JS.ACK.SKEIN_TIMELINE.acme=c.1.-2.3.4.5":                           false,
		"$JS.ACK.SKEIN_TIMELINE.acme=c" + end + ".5":                         false,
		"$JS.ACK.SKEIN_RUNS.skein-runs.SKEIN_TIMELINE.acme=c.1.1.1.1":        false,
		"$JS.ACK.SKEIN_RUNS.skein-runs.SKEIN_TIMELINE.acme=c" + end + ".6.7": false,
		"$JS.ACK.SKEIN_TIMELINE.globex=c" + end:                              false,
		"$JS.ACK.SKEIN_TIMELINE.acme=d" + end:                                false,
		"$JS.ACK.SKEIN_TIMELINE.acme=c" + end + "\n":                         false,
		"$JS.ACK.SKEIN_TIMELINE.acme=c.1.2.3.4.>":                            false,
		"": false,
	} {
		err := ConsumersOf(l).Settle(t.Context(), logtest.Tenant, "c", token, events.SettledBusy)
		if refused := errors.Is(err, &events.Error{Code: events.InvalidRequest}); refused == good {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// An acknowledgement of what was not delivered is refused, and not left without an answer; one
// that is repeated is no error.
func TestConsumers_SettleUndelivered(t *testing.T) {
	l := logtest.Start(t)
	consumers := ConsumersOf(l)
	settle := func(token string) error {
		return consumers.Settle(t.Context(), logtest.Tenant, "c", token, events.SettledDone)
	}
	token := func(seq uint64) string {
		return fmt.Sprintf("$JS.ACK.SKEIN_TIMELINE.acme=c.1.%d.1.1700000000000000000.0", seq)
	}
	if err := settle(token(1)); !errors.Is(err, ErrNoConsumer) {
		t.Errorf("of a consumer that is not there: %v", err)
	}
	if err := consumers.Put(t.Context(), logtest.Tenant, "c", []string{"skein.timeline.acme.>"}, Start{}); err != nil {
		t.Fatal(err)
	}
	if err := settle(token(1)); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
		t.Errorf("before anything was delivered: %v", err)
	}
	for range 2 {
		m := nats.NewMsg("skein.timeline.acme.T-1.item.created")
		m.Header.Set(events.HeaderSeq, "1")
		if _, err := l.JetStream().PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := consumers.Next(t.Context(), logtest.Tenant, "c", time.Minute)
	if err != nil || got == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, seq := range []string{token(2), token(9), token(math.MaxUint64)} {
		if err := settle(seq); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("%s: %v", seq, err)
		}
	}
	for range 2 {
		if err := settle(got.Token); err != nil {
			t.Errorf("what was delivered: %v", err)
		}
	}
}

// However many consumers a tenant makes at the same time, through several
// processes, it has as many as it may have, and is told of each whether it is there.
func TestConsumers_LimitHoldsWhenRaced(t *testing.T) {
	a := logtest.Start(t)
	logs := []*eventlog.Log{a, logtest.Sibling(t, a)}
	var mu sync.Mutex
	made := map[string]bool{}
	var racing sync.WaitGroup
	for i := range 2 * tenantConsumers {
		racing.Go(func() {
			name := "c" + strconv.Itoa(i)
			err := ConsumersOf(logs[i%2]).Put(t.Context(), logtest.Tenant, name, []string{"skein.timeline.acme.>"}, Start{New: true})
			if err != nil && !errors.Is(err, &events.Error{Code: events.QueueFull}) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			made[name] = err == nil
		})
	}
	racing.Wait()
	stream, err := a.JetStream().Stream(t.Context(), "SKEIN_TIMELINE")
	if err != nil {
		t.Fatal(err)
	}
	there := 0
	for name, ok := range made {
		_, err := stream.Consumer(t.Context(), consumerName(logtest.Tenant, name))
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Fatal(err)
		}
		if err == nil {
			there++
		}
		if ok != (err == nil) {
			t.Errorf("%s was made: %v; it is there: %v", name, ok, err == nil)
		}
	}
	if there != tenantConsumers {
		t.Errorf("the tenant has %d consumers, want %d", there, tenantConsumers)
	}
}
