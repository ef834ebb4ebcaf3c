package streams_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// The whole of a tenant is read without the server counting, with each batch, what
// else of the tenant there is: that is quadratic.
func TestStored_OfAWholeTenantIsNotCountedWithEachBatch(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	l.Streams().SetScanWorth(1)
	mine, other := logtest.NewAuthor(1), logtest.NewAuthor(2)
	var want []uint64
	for range streams.BatchMessages + 40 {
		mine.Write(t, l, 1, 1)
		want = append(want, mine.Seq)
	}
	foreign, err := events.NewCommit("", []events.Event{{
		ID: "1", Type: events.ThreadCreatedType, Tenant: "other", ThreadID: other.Thread, Version: 1, Data: events.ThreadCreated{},
	}})
	logtest.Must(t, err)
	logtest.Must(t, l.Append(t.Context(), eventlog.Write{Commit: foreign}))
	mine.Write(t, l, 1, 1)
	want = append(want, mine.Seq)
	asked, err := l.Conn().SubscribeSync("$JS.API.DIRECT.GET." + l.Config().Names.Stream(assets.LogStream))
	logtest.Must(t, err)
	for name, read := range map[string]iter.Seq2[streams.Message, error]{
		"stored": l.Stored(t.Context(), l.Config().Names.Log(logtest.Tenant, "*"), 1),
		"raw":    l.Raw(t.Context(), l.Config().Names.Log(logtest.Tenant, "*"), 1),
	} {
		var got []uint64
		for m, err := range read {
			logtest.Must(t, err)
			got = append(got, m.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d commits of the logtest.Tenant, not %d", name, len(got), len(want))
		}
		for batch, q := range requests(t, l, asked) {
			if wide := q.Next == ">"; wide != (batch > 0) {
				t.Errorf("%s: batch %d is asked for with %s", name, batch, q.Next)
			}
		}
	}
	for _, thread := range []string{mine.Thread, "T-none"} { // one thread is never widened
		for _, err := range l.Stored(t.Context(), l.Config().Names.Log(logtest.Tenant, thread), 1) {
			logtest.Must(t, err)
		}
		for _, q := range requests(t, l, asked) {
			if q.Next == ">" {
				t.Errorf("of one thread all is read: %+v", q)
			}
		}
	}
}

// requests returns the reads that a subscription has seen, and at least one.
func requests(t *testing.T, l *eventlog.Log, asked *nats.Subscription) (all []streams.GetRequest) {
	t.Helper()
	logtest.Must(t, l.Conn().Flush())
	for n := 1; n > 0; n, _, _ = asked.Pending() {
		m, err := asked.NextMsg(natstest.Patience)
		logtest.Must(t, err)
		var q streams.GetRequest
		logtest.Must(t, json.Unmarshal(m.Data, &q))
		all = append(all, q)
	}
	return all
}

// A read that ends after a few messages costs the server a few, and a long one few requests.
func TestScan_BeginsWithASmallBatch(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	for range 2 * streams.BatchMessages {
		a.Write(t, l, 1, 1)
	}
	asked, err := l.Conn().SubscribeSync("$JS.API.DIRECT.GET." + l.Config().Names.Stream(assets.LogStream))
	logtest.Must(t, err)
	for most, want := range map[int][]int{20: {32}, 100: {32, 128}, 2 * streams.BatchMessages: {32, 128, 512, 512}} {
		read := 0
		for _, err := range l.Stored(t.Context(), l.Config().Names.Log(logtest.Tenant, a.Thread), 1) {
			logtest.Must(t, err)
			if read++; read == most {
				break
			}
		}
		var got []int
		for _, q := range requests(t, l, asked) {
			got = append(got, q.Batch)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d messages were read in batches of at most %v, not %v", most, got, want)
		}
	}
}
