package eventlog

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// foreign puts messages on the timeline that the relay did not write: without its
// headers, with headers that say nothing true, and an event of the log again.
func foreign(t *testing.T, l *Log) (n int) {
	t.Helper()
	c := history(t, l)[0]
	subject := l.cfg.Names.Timeline(tenant, c.Thread, c.Events[0].Type)
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
		{Subject: l.cfg.Names.Timeline(tenant, c.Thread, "item.renamed"), Header: at("1", own), Data: c.Events[0].Raw()},
		{Subject: subject, Header: at("1", own), Data: []byte(altered)},
	} {
		if _, err := l.conn.JetStream().PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// Whoever may publish on a timeline subject does not stop the relay: what it did not
// write is removed, and the timeline goes on as the log says.
func TestRelay_RemovesWhatItDidNotWrite(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
	a := newAuthor(1)
	a.write(t, l, 3, 2)
	stop := running(t, l)
	reaches(t, l, a)

	n := foreign(t, l) // while it runs
	a.write(t, l, 2, 3)
	reaches(t, l, a)
	exact(t, l, 0)

	stop() // and while it does not
	n += foreign(t, l)
	running(t, l)
	reaches(t, l, a)
	a.write(t, l, 1, 1)
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
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 3, 3)
	stop := running(t, l)
	reaches(t, l, a)
	stop()
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(assets.TimelineStream))
	must(t, err)
	last := stream.CachedInfo().State.LastSeq
	must(t, stream.DeleteMsg(t.Context(), last), stream.DeleteMsg(t.Context(), last-1))
	running(t, l)
	reaches(t, l, a)
	exact(t, l, 0)
}

// An event on the timeline that lies behind the log's end may be all that is left of
// a commit: it is not removed, and the relay says why it does not go on.
func TestRelay_KeepsWhatTheLogHasLost(t *testing.T) {
	t.Parallel()
	l, older := start(t), start(t)
	for _, log := range []*Log{l, older} {
		a := newAuthor(1)
		a.write(t, log, 1, 2)
	}
	lost := newAuthor(1)
	for range 2 { // of a log that went further
		lost.next(t, 2)
	}
	w := lost.next(t, 2)
	e := &w.Commit.Events[0]
	_, err := l.conn.JetStream().PublishMsg(t.Context(), &nats.Msg{
		Subject: l.cfg.Names.Timeline(tenant, w.Commit.Thread, e.Type), Data: e.Raw(),
		Header: nats.Header{events.HeaderSeq: {"9"}, events.HeaderVersion: {strconv.FormatInt(e.Version, 10)}},
	})
	must(t, err)
	var asset *streams.AssetError
	if err := l.relay(t.Context(), 1); !errors.As(err, &asset) || !strings.Contains(err.Error(), "commit 9") {
		t.Errorf("the relay says %v", err)
	}
	if got := timeline(t, l); len(got) != 1 {
		t.Errorf("the timeline has %d messages", len(got))
	}
}
