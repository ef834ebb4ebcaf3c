package timeline

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// foreign puts messages on the timeline that the relay did not write: without its
// headers, with headers that say nothing true, and an event of the log again.
func foreign(t *testing.T, l *eventlog.Log) (n int) {
	t.Helper()
	c := logtest.History(t, l)[0]
	subject := l.Config().Names.Timeline(logtest.Tenant, c.Thread, c.Events[0].Type)
	at := func(seq, version string) nats.Header {
		return nats.Header{events.HeaderSeq: {seq}, events.HeaderVersion: {version}}
	}
	own := strconv.FormatInt(c.Events[0].Version, 10)
	altered := strings.Replace(string(c.Events[0].Raw()), "2026", "2027", 1)
	for _, m := range []*nats.Msg{
		{Subject: subject, Data: []byte("raw")},
		{Subject: subject, Header: at("1", own), Data: []byte("raw")},
		{Subject: subject, Header: at("18446744073709551615", own), Data: []byte("raw")},
		{Subject: subject, Header: at("2", own), Data: c.Events[0].Raw()},
		{Subject: l.Config().Names.Timeline(logtest.Tenant, c.Thread, "item.renamed"), Header: at("1", own), Data: c.Events[0].Raw()},
		{Subject: subject, Header: at("1", own), Data: []byte(altered)},
	} {
		if _, err := l.JetStream().PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A client that may publish on a timeline subject does not stop the relay, which removes
// foreign messages and continues as the log says.
func TestRelay_RemovesForeignMessages(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openTold(t, m)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 3, 2)
	stop := running(t, l)
	reaches(t, l, a)

	n := foreign(t, l) // while it runs
	a.Write(t, l, 2, 3)
	reaches(t, l, a)
	exact(t, l, 0)

	stop() // and while it does not
	n += foreign(t, l)
	running(t, l)
	reaches(t, l, a)
	a.Write(t, l, 1, 1)
	reaches(t, l, a)
	exact(t, l, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.healed != n {
		t.Errorf("the metrics were told of %d messages, and %d were there", m.healed, n)
	}
}

// A message of the relay's own that somebody deleted is relayed again, and no other.
func TestRelay_RepeatsOnlyWhatWasDeletedAtTheEnd(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 3, 3)
	stop := running(t, l)
	reaches(t, l, a)
	stop()
	stream, err := l.JetStream().Stream(t.Context(), l.Config().Names.Stream(assets.TimelineStream))
	logtest.Must(t, err)
	last := stream.CachedInfo().State.LastSeq
	logtest.Must(t, stream.DeleteMsg(t.Context(), last), stream.DeleteMsg(t.Context(), last-1))
	running(t, l)
	reaches(t, l, a)
	exact(t, l, 0)
}

// An event on the timeline that lies behind the log's end may be all that is left of
// a commit: it is not removed, and the relay says why it does not go on.
func TestRelay_KeepsWhatTheLogHasLost(t *testing.T) {
	t.Parallel()
	l, older := logtest.Start(t), logtest.Start(t)
	for _, log := range []*eventlog.Log{l, older} {
		a := logtest.NewAuthor(1)
		a.Write(t, log, 1, 2)
	}
	lost := logtest.NewAuthor(1)
	for range 2 { // of a log that went further
		lost.Next(t, 2)
	}
	w := lost.Next(t, 2)
	e := &w.Commit.Events[0]
	_, err := l.JetStream().PublishMsg(t.Context(), &nats.Msg{
		Subject: l.Config().Names.Timeline(logtest.Tenant, w.Commit.Thread, e.Type), Data: e.Raw(),
		Header: nats.Header{events.HeaderSeq: {"9"}, events.HeaderVersion: {strconv.FormatInt(e.Version, 10)}},
	})
	logtest.Must(t, err)
	var asset *streams.AssetError
	if err := Of(l).relayTo(t.Context(), 1); !errors.As(err, &asset) || !strings.Contains(err.Error(), "commit 9") {
		t.Errorf("the relay says %v", err)
	}
	if got := messages(t, l); len(got) != 1 {
		t.Errorf("the timeline has %d messages", len(got))
	}
}

// A rebuild and the relay that runs meanwhile may remove the same messages.
func TestRelay_TwoRemoveTheSame(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 3, 2)
	stop := running(t, l)
	reaches(t, l, a)
	stop()
	for range 20 {
		foreign(t, l)
	}
	results := make(chan error, 2)
	for _, one := range []*eventlog.Log{l, logtest.Sibling(t, l)} {
		go func() {
			_, _, err := Of(one).heal(t.Context())
			results <- err
		}()
	}
	logtest.Must(t, natstest.Within(t, "the first", results), natstest.Within(t, "the second", results))
	exact(t, l, 0)
}
