package assets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/logtest"
)

// A timeline that took everything below its subject is brought up to date, keeps
// what it holds, and then takes no chunks; what a newer Skein added stays.
func TestEnsure_NarrowsTimelineThatTookEverything(t *testing.T) {
	t.Parallel()
	l := bare(t, eventlog.Config{})
	was := wanted(l)[1].Config
	was.Subjects = []string{l.Config().Names.Timeline("*", "*", ">")}
	_, err := l.JetStream().CreateStream(t.Context(), was)
	logtest.Must(t, err)
	_, err = l.JetStream().Publish(t.Context(), l.Config().Names.Timeline(logtest.Tenant, "T-1", "item.created"), nil)
	logtest.Must(t, err)
	logtest.Must(t, l.Ensure(t.Context()))
	now := streamsOf(t, l)["SKEIN_TIMELINE"].Config.Subjects
	for _, s := range now {
		if strings.Contains(s, "chunk") || strings.HasSuffix(s, "*.*.>") {
			t.Errorf("the timeline takes %s", s)
		}
	}
	_, err = l.JetStream().Publish(t.Context(), l.Config().Names.Chunk(logtest.Tenant, "T-1", "exe_1"), []byte("a"))
	logtest.Must(t, err)
	stream, err := l.JetStream().Stream(t.Context(), "SKEIN_TIMELINE")
	logtest.Must(t, err)
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("the timeline holds %d messages", n)
	}

	logtest.Must(t, assets.WidenTimeline(t.Context(), l.Streams(), stream.CachedInfo().Config, l.Config().Names.Timeline("*", "*", "novelty.>")))
	logtest.Must(t, l.Ensure(t.Context()))
	if got := streamsOf(t, l)["SKEIN_TIMELINE"].Config.Subjects; len(got) != len(now)+1 {
		t.Errorf("after a newer Skein: %v", got)
	}
	config := streamsOf(t, l)["SKEIN_TIMELINE"].Config
	config.Subjects = append(config.Subjects, "orders.>")
	_, err = l.JetStream().UpdateStream(t.Context(), config)
	logtest.Must(t, err)
	var refused *streams.AssetError
	if err := l.Ensure(t.Context()); !errors.As(err, &refused) {
		t.Errorf("a timeline with orders in it: %v", err)
	}
}
