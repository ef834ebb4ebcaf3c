package assets_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// bare returns a log whose streams were not created.
func bare(t *testing.T, cfg eventlog.Config) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Open(natstest.Connect(t, natstest.Start(t)), cfg, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// wanted returns the streams that Ensure would create for a log.
func wanted(l *eventlog.Log) []streams.Asset {
	return assets.StreamsFor(l.Streams(), assets.Ages{Timeline: l.Config().TimelineAge, Chunk: l.Config().ChunkAge, Command: l.Config().CommandAge})
}

// streamsOf returns the configuration of every stream and when it was made.
func streamsOf(t *testing.T, l *eventlog.Log) map[string]jetstream.StreamInfo {
	t.Helper()
	list := l.JetStream().ListStreams(t.Context())
	all := map[string]jetstream.StreamInfo{}
	for info := range list.Info() {
		all[info.Config.Name] = jetstream.StreamInfo{Config: info.Config, Created: info.Created}
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// announced returns what the server announces of streams from here on, as their
// names and what was done. The server announces later than it answers, and what
// it says of one stream is in order but not what it says of several: a consumer
// on each, which it announces in the same order, shows that nothing is to come.
func announced(t *testing.T, l *eventlog.Log) func(names []string) []string {
	t.Helper()
	sub, err := l.Conn().SubscribeSync("$JS.EVENT.ADVISORY.*.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	return func(names []string) []string {
		t.Helper()
		for _, name := range names {
			if _, err := l.JetStream().CreateConsumer(t.Context(), name, jetstream.ConsumerConfig{}); err != nil {
				t.Fatal(err)
			}
		}
		var changes []string
		for left := slices.Clone(names); len(left) > 0; {
			msg, err := sub.NextMsg(natstest.Patience)
			if err != nil {
				t.Fatalf("waited in vain for what is announced of %q: %v", left, err)
			}
			switch what := strings.Split(strings.TrimPrefix(msg.Subject, "$JS.EVENT.ADVISORY."), "."); what[0] {
			case "STREAM":
				changes = append(changes, what[2]+" "+what[1])
			case "CONSUMER":
				left = slices.DeleteFunc(left, func(name string) bool { return name == what[2] })
			}
		}
		slices.Sort(changes)
		return changes
	}
}

func TestEnsure_CreatesEachStreamOnce(t *testing.T) {
	l := bare(t, eventlog.Config{})
	changes := announced(t, l)
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := streamsOf(t, l)
	for _, name := range []string{"SKEIN_LOG", "SKEIN_TIMELINE", "SKEIN_CHUNKS", "SKEIN_COMMANDS", "KV_thread_leases", "OBJ_thread_snapshots"} {
		if _, ok := made[name]; !ok {
			t.Errorf("%s was not made", name)
		}
	}
	log := made["SKEIN_LOG"].Config
	if log.MaxAge != 0 || log.Discard != jetstream.DiscardNew || !log.AllowAtomicPublish ||
		log.PersistMode != jetstream.DefaultPersistMode || log.Storage != jetstream.FileStorage {
		t.Errorf("the log may lose commits: %+v", log)
	}
	if mode := made["SKEIN_TIMELINE"].Config.PersistMode; mode != jetstream.AsyncPersistMode {
		t.Errorf("the timeline's persist mode is %v", mode)
	}
	if age := made["SKEIN_TIMELINE"].Config.MaxAge; age != 7*24*time.Hour {
		t.Errorf("the timeline keeps events for %v", age)
	}

	others := func() error { // which are made when they are first used
		var errs []error
		for _, a := range []streams.Asset{assets.Operations(l.Streams()), assets.Secrets(l.Streams())} {
			errs = append(errs, l.Streams().Ensure(t.Context(), a))
		}
		return errors.Join(append(errs, assets.EnsureBucket(t.Context(), l.Streams(), "thread_items"))...)
	}
	if err := others(); err != nil {
		t.Fatal(err)
	}
	made = streamsOf(t, l)
	for range 2 {
		if err := errors.Join(l.Ensure(t.Context()), others()); err != nil {
			t.Fatal(err)
		}
	}
	if again := streamsOf(t, l); !reflect.DeepEqual(made, again) {
		t.Errorf("the second time changed %+v to %+v", made, again)
	}
	names := slices.Sorted(maps.Keys(made))
	var once []string
	for _, name := range names {
		once = append(once, name+" CREATED")
	}
	if got := changes(names); !slices.Equal(got, once) {
		t.Errorf("the server announced %q, want %q", got, once)
	}
}

// The embedded server's timeline and read models are compressed like the log. Another server's are
// not: nobody checks its files after a power cut.
func TestEnsure_UpdatesAndKeepsTheOperatorsLimits(t *testing.T) {
	for _, embedded := range []bool{false, true} {
		t.Run(fmt.Sprint("embedded ", embedded), func(t *testing.T) { ensureUpdates(t, embedded) })
	}
}

func ensureUpdates(t *testing.T, embedded bool) {
	l := bare(t, eventlog.Config{TimelineAge: time.Hour, Embedded: embedded})
	for _, a := range wanted(l) {
		a.Config.Description, a.Config.MaxBytes, a.Config.Duplicates = "old", 64<<20, time.Minute
		a.Config.AllowDirect, a.Config.Compression = false, jetstream.S2Compression
		if a.Config.Name == "SKEIN_TIMELINE" && embedded { // as an earlier build created it
			a.Config.Compression = jetstream.NoCompression
		}
		if a.Config.MaxAge > 0 {
			a.Config.MaxAge = 2 * time.Hour
		}
		if a.Config.Name == "SKEIN_LOG" {
			a.Config.AllowAtomicPublish = false
		}
		if _, err := l.JetStream().CreateStream(t.Context(), a.Config); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := streamsOf(t, l)
	for _, a := range wanted(l) {
		got := made[a.Config.Name].Config
		if got.Description != a.Config.Description || got.MaxAge != a.Config.MaxAge || got.AllowDirect != a.Config.AllowDirect ||
			got.AllowAtomicPublish != a.Config.AllowAtomicPublish || got.DenyDelete != a.Config.DenyDelete || got.Duplicates != a.Config.Duplicates ||
			(got.Compression == jetstream.S2Compression) != (a.Config.Name == "SKEIN_LOG" || a.Config.Name == "SKEIN_TIMELINE" && embedded) {
			t.Errorf("%s was not brought up to date: %+v", a.Config.Name, got)
		}
		if got.MaxBytes != 64<<20 {
			t.Errorf("%s: the operator's limit is now %d", a.Config.Name, got.MaxBytes)
		}
	}
	bucket := func() jetstream.StreamConfig {
		if err := assets.EnsureBucket(t.Context(), l.Streams(), "thread_items"); err != nil {
			t.Fatal(err)
		}
		return streamsOf(t, l)["KV_thread_items"].Config
	}
	cfg := bucket()
	if cfg.Compression = jetstream.S2Compression; embedded { // as an earlier build created it
		cfg.Compression = jetstream.NoCompression
	}
	if _, err := l.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if got := bucket().Compression; (got == jetstream.S2Compression) != embedded {
		t.Errorf("a read model's compression is now %v", got)
	}
}

func TestEnsure_RefusesWhatWouldLoseData(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		spoil  func(*jetstream.StreamConfig)
	}{
		"work queue":     {assets.LogStream, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }},
		"interest":       {assets.LogStream, func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }},
		"memory":         {assets.LogStream, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		"age":            {assets.LogStream, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		"discard old":    {assets.LogStream, func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 10 }},
		"discard bytes":  {assets.LogStream, func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 }},
		"one a subject":  {assets.LogStream, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }},
		"other subjects": {assets.LogStream, func(c *jetstream.StreamConfig) { c.Subjects = []string{"orders.>"} }},
		"more subjects":  {assets.LogStream, func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "orders.>") }},
		"no answers":     {assets.LogStream, func(c *jetstream.StreamConfig) { c.NoAck = true }},
		"sealed":         {assets.LogStream, func(*jetstream.StreamConfig) {}}, // sealed below
		"other names": {assets.LogStream, func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "x.>"}
		}},
		"async": {assets.LogStream, func(c *jetstream.StreamConfig) {
			c.AllowAtomicPublish, c.PersistMode = false, jetstream.AsyncPersistMode
		}},
		"mirror": {assets.LogStream, func(c *jetstream.StreamConfig) {
			*c = jetstream.StreamConfig{Name: c.Name, Mirror: &jetstream.StreamSource{Name: "OTHER"}}
		}},
		"sources": {assets.LogStream, func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} }},
		"derived, memory": {assets.TimelineStream, func(c *jetstream.StreamConfig) {
			c.Storage, c.PersistMode = jetstream.MemoryStorage, jetstream.DefaultPersistMode
		}},
		// It is not ours: neither taken, nor thrown away for its persist mode.
		"derived, not ours": {assets.TimelineStream, func(c *jetstream.StreamConfig) {
			c.Subjects, c.PersistMode = []string{"orders.>"}, jetstream.DefaultPersistMode
		}},
		"commands, limits": {assets.CommandStream, func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }},
	} {
		t.Run(name, func(t *testing.T) {
			l := bare(t, eventlog.Config{})
			var there jetstream.StreamConfig
			for _, a := range wanted(l) {
				if a.Config.Name == l.Config().Names.Stream(test.stream) {
					there = a.Config
				}
			}
			test.spoil(&there)
			if _, err := l.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.JetStream().CreateStream(t.Context(), there); err != nil {
				t.Fatal(err)
			}
			if name == "sealed" {
				there.Sealed = true
				if _, err := l.JetStream().UpdateStream(t.Context(), there); err != nil {
					t.Fatal(err)
				}
			}
			before := streamsOf(t, l)[there.Name]
			err := l.Ensure(t.Context())
			var refused *streams.AssetError
			if !errors.As(err, &refused) || refused.Name != there.Name || refused.Problem == "" || refused.Hint == "" {
				t.Errorf("it was not refused: %v", err)
			}
			if after := streamsOf(t, l)[there.Name]; !reflect.DeepEqual(before, after) {
				t.Errorf("it was changed from %+v to %+v", before, after)
			}
		})
	}
}

func TestEnsure_RecreatesDerivedStreamOfOtherPersistMode(t *testing.T) {
	l := bare(t, eventlog.Config{})
	was := wanted(l)[1].Config
	was.PersistMode, was.MaxBytes = jetstream.DefaultPersistMode, 64<<20
	if _, err := l.JetStream().CreateStream(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if _, err := l.JetStream().Publish(t.Context(), l.Config().Names.Timeline(logtest.Tenant, "T-1", "item.created"), nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	stream, err := l.JetStream().Stream(t.Context(), was.Name)
	if err != nil {
		t.Fatal(err)
	}
	info := stream.CachedInfo()
	if info.Config.PersistMode != jetstream.AsyncPersistMode || info.State.Msgs != 0 || info.Config.MaxBytes != 64<<20 {
		t.Errorf("the timeline is %+v with %d messages", info.Config, info.State.Msgs)
	}
}

func TestEnsure_SeparatesPrefixes(t *testing.T) {
	l := bare(t, eventlog.Config{})
	other := logtest.Open(t, l.Conn(), eventlog.Config{Names: events.Names{Prefix: "other"}})
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	logtest.NewAuthor(1).Write(t, l, 3, 1)
	logtest.NewAuthor(1).Write(t, other, 1, 1)
	if n, m := len(logtest.History(t, l)), len(logtest.History(t, other)); n != 3 || m != 1 {
		t.Errorf("the logs hold %d and %d commits", n, m)
	}
}

func TestEnsureBucket_IsAKeyValueBucketForAnyClient(t *testing.T) {
	l := logtest.Start(t)
	const bucket = "thread_items"
	if err := assets.EnsureBucket(t.Context(), l.Streams(), bucket); err != nil {
		t.Fatal(err)
	}
	b := l.Bucket(bucket)
	fence, err := derived.NewFence(t.Context(), l.Streams(), b.Stream())
	if err != nil {
		t.Fatal(err)
	}
	logtest.Must(t,
		fence.Send(t.Context(), b.Subject("acme.T-1.a"), nil, []byte(`{"n":1}`)),
		fence.Send(t.Context(), b.Subject("acme.T-1.b"), nil, []byte(`{"n":2}`)),
		fence.Send(t.Context(), b.Subject("acme.T-1.b"), nats.Header{"KV-Operation": {"DEL"}}, nil),
		fence.Final(t.Context(), b.Subject("acme.T-1.a"), nil, []byte(`{"n":3}`)),
	)
	kv, err := l.JetStream().KeyValue(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := kv.Get(t.Context(), "acme.T-1.a")
	if err != nil || string(entry.Value()) != `{"n":3}` || entry.Revision() != fence.Last() {
		t.Errorf("got %v: %v", entry, err)
	}
	if _, err := kv.Get(t.Context(), "acme.T-1.b"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("a deleted document: %v", err)
	}
	keys, err := kv.Keys(t.Context())
	if err != nil || !reflect.DeepEqual(keys, []string{"acme.T-1.a"}) {
		t.Errorf("keys %v: %v", keys, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	watch, err := kv.WatchFiltered(ctx, []string{"acme.T-1.*"})
	if err != nil {
		t.Fatal(err)
	}
	if first := natstest.Within(t, "a document by watching", watch.Updates()); first == nil {
		t.Error("a watcher is given nothing")
	}
}
