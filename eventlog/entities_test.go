package eventlog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// A timeline that took everything below its subject is brought up to date, keeps
// what it holds, and then takes no chunks; what a newer Skein added stays.
func TestATimelineThatTookEverything(t *testing.T) {
	t.Parallel()
	l := bare(t, Config{})
	was := l.assets()[1].Config
	was.Subjects = []string{l.cfg.Names.Timeline("*", "*", ">")}
	_, err := l.conn.JetStream().CreateStream(t.Context(), was)
	must(t, err)
	_, err = l.conn.JetStream().Publish(t.Context(), l.cfg.Names.Timeline(tenant, "T-1", "item.created"), nil)
	must(t, err)
	must(t, l.Ensure(t.Context()))
	now := streamsOf(t, l)["SKEIN_TIMELINE"].Config.Subjects
	for _, s := range now {
		if strings.Contains(s, "chunk") || strings.HasSuffix(s, "*.*.>") {
			t.Errorf("the timeline takes %s", s)
		}
	}
	_, err = l.conn.JetStream().Publish(t.Context(), l.cfg.Names.Chunk(tenant, "T-1", "exe_1"), []byte("a"))
	must(t, err)
	if got := timeline(t, l); len(got) != 1 {
		t.Errorf("the timeline holds %d messages", len(got))
	}

	stream, err := l.conn.JetStream().Stream(t.Context(), "SKEIN_TIMELINE")
	must(t, err)
	must(t, l.widen(t.Context(), stream.CachedInfo().Config, l.cfg.Names.Timeline("*", "*", "novelty.>")))
	must(t, l.Ensure(t.Context()))
	if got := streamsOf(t, l)["SKEIN_TIMELINE"].Config.Subjects; len(got) != len(now)+1 {
		t.Errorf("after a newer Skein: %v", got)
	}
	config := streamsOf(t, l)["SKEIN_TIMELINE"].Config
	config.Subjects = append(config.Subjects, "orders.>")
	_, err = l.conn.JetStream().UpdateStream(t.Context(), config)
	must(t, err)
	var refused *streams.AssetError
	if err := l.Ensure(t.Context()); !errors.As(err, &refused) {
		t.Errorf("a timeline with orders in it: %v", err)
	}
}

// Events of an entity that only a newer Skein knows are put on the timeline.
func TestTheTimelineTakesUnknownEntities(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	for i, name := range []events.Type{"novelty.arrived", "plain"} {
		c, err := events.NewCommit(a.chain, []events.Event{{
			ID: fmt.Sprint("e", i), Type: name, Subject: a.thread, Time: 1, Tenant: tenant, ThreadID: a.thread,
			Version: a.version + 1, CommandID: "c", Data: events.Unknown{Schema: "urn:x", Raw: events.JSON("{}")},
		}})
		must(t, err)
		must(t, l.Append(t.Context(), Write{Commit: c, Expected: a.seq}))
		a.version, a.chain, a.seq = c.Version, c.Chain, c.Seq
	}
	a.write(t, l, 1, 2)
	running(t, l)
	reaches(t, l, a)
	exact(t, l, 0)
	must(t, l.Ensure(t.Context()))
}
