package eventlog

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// The whole of a tenant is read without the server counting, with each batch, what
// else of the tenant there is: that is quadratic.
func TestStored_OfAWholeTenantIsNotCountedWithEachBatch(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.scanWorth = 1
	mine, other := newAuthor(1), newAuthor(2)
	var want []uint64
	for range threadBatch + 40 {
		mine.write(t, l, 1, 1)
		want = append(want, mine.seq)
	}
	foreign, err := events.NewCommit("", []events.Event{{
		ID: "1", Type: events.ThreadCreatedType, Tenant: "other", ThreadID: other.thread, Version: 1, Data: events.ThreadCreated{},
	}})
	must(t, err)
	must(t, l.Append(t.Context(), Write{Commit: foreign}))
	mine.write(t, l, 1, 1)
	want = append(want, mine.seq)
	asked, err := l.nc.SubscribeSync("$JS.API.DIRECT.GET." + l.cfg.Names.Stream(LogStream))
	must(t, err)
	for name, read := range map[string]iter.Seq2[Message, error]{
		"stored": l.Stored(t.Context(), l.cfg.Names.Log(tenant, "*"), 1),
		"raw":    l.Raw(t.Context(), l.cfg.Names.Log(tenant, "*"), 1),
	} {
		var got []uint64
		for m, err := range read {
			must(t, err)
			got = append(got, m.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d commits of the tenant, not %d", name, len(got), len(want))
		}
		for batch := range 2 {
			m, err := asked.NextMsg(patience)
			must(t, err)
			var q getRequest
			must(t, json.Unmarshal(m.Data, &q))
			if wide := q.Next == ">"; wide != (batch > 0) {
				t.Errorf("%s: batch %d is asked for with %s", name, batch, q.Next)
			}
		}
	}
	for _, thread := range []string{mine.thread, "T-none"} { // one thread is never widened
		for _, err := range l.Stored(t.Context(), l.cfg.Names.Log(tenant, thread), 1) {
			must(t, err)
		}
		m, err := asked.NextMsg(patience)
		must(t, err)
		if strings.Contains(string(m.Data), `">"`) {
			t.Errorf("of one thread all is read: %s", m.Data)
		}
	}
}
