package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/store"
)

// used is a store that a server uses, and what was opened of it.
type used struct {
	t      *testing.T
	cfg    store.Config
	opened *store.Opened
	js     jetstream.JetStream
}

func newUsed(t *testing.T, streams ...jetstream.StreamConfig) *used {
	t.Helper()
	u := &used{t: t, cfg: store.Config{Dir: t.TempDir(), Log: "LOG", Derived: func(string) bool { return false }}}
	var err error
	if u.opened, err = store.Open(t.Context(), u.cfg); err != nil {
		t.Fatal(err)
	}
	if u.js, err = jetstream.New(natstest.Connect(t, natstest.Start(t, natstest.StoreDir(u.cfg.Dir)))); err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		if _, err := u.js.CreateStream(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// publish stores n messages of a subject, of which nine fill a block.
func (u *used) publish(subject string, n int) {
	u.t.Helper()
	for range n {
		if _, err := u.js.Publish(u.t.Context(), subject, make([]byte, 900<<10)); err != nil {
			u.t.Fatal(err)
		}
	}
}

// mark records where the streams end, as often as it takes to list all blocks.
func (u *used) mark() {
	u.t.Helper()
	for range 4 {
		names, err := u.opened.Others("$G", 16)
		if err != nil {
			u.t.Fatal(err)
		}
		ends := map[string]store.End{}
		for _, name := range names {
			s, err := u.js.Stream(u.t.Context(), name)
			if err != nil {
				u.t.Fatal(err)
			}
			state := s.CachedInfo().State
			ends[name] = store.End{Last: state.LastSeq, Empty: state.Msgs == 0}
		}
		if err := u.opened.Reached("$G", ends); err != nil {
			u.t.Fatal(err)
		}
	}
}

// killed returns a copy of the store, as a process leaves it that is killed.
func (u *used) killed() store.Config {
	u.t.Helper()
	cfg := u.cfg
	cfg.Dir = u.t.TempDir()
	if err := os.CopyFS(cfg.Dir, os.DirFS(u.cfg.Dir)); err != nil {
		u.t.Fatal(err)
	}
	return cfg
}

func messages(cfg store.Config, stream string) string {
	return filepath.Join(cfg.Dir, "jetstream", "$G", "streams", stream, "msgs")
}

func remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
}

// found returns what a check says of a store, and whether it is what a start says.
func found(t *testing.T, cfg store.Config) []string {
	t.Helper()
	r, err := store.Check(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range r.Damages {
		out = append(out, d.String())
	}
	_, err = store.Open(t.Context(), cfg)
	if damaged := (*store.DamagedError)(nil); errors.As(err, &damaged) != (len(out) > 0) {
		t.Errorf("the check says %q, and a start %v", out, err)
	}
	return out
}

// Blocks of a killed store that are gone are missed, by the list of sealed blocks or, without it, by
// the sequences of a log from which nothing was ever erased. A block that the server removed with its
// messages is not. A repair finds them in a copy, or asks before it goes on without them.
func TestCheck_SealedBlockIsGone(t *testing.T) {
	u := newUsed(t, jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log.*"}})
	u.publish("log.a", 40)
	u.mark()
	whole := u.killed()
	if got := found(t, u.killed()); got != nil {
		t.Fatalf("a killed store of which nothing is gone: %q", got)
	}
	blocks, err := filepath.Glob(filepath.Join(messages(whole, "LOG"), "*.blk"))
	if err != nil || len(blocks) < 5 {
		t.Fatalf("%q, %v", blocks, err)
	}
	last := len(blocks)
	name := func(cfg store.Config, n int) string {
		return filepath.Join(messages(cfg, "LOG"), string(rune('0'+n))+".blk")
	}
	all := func(cfg store.Config) (out []string) {
		for n := 1; n < last; n++ {
			out = append(out, name(cfg, n))
		}
		return out
	}
	list := func(cfg store.Config) string { return filepath.Join(cfg.Dir, "skein.sealed") }
	for title, gone := range map[string]func(store.Config) []string{
		"the first block":           func(c store.Config) []string { return []string{name(c, 1)} },
		"one in the middle":         func(c store.Config) []string { return []string{name(c, 3)} },
		"all but the last":          all,
		"the first, and the list":   func(c store.Config) []string { return []string{name(c, 1), list(c)} },
		"the middle, and the list":  func(c store.Config) []string { return []string{name(c, 3), list(c)} },
		"all but one, and the list": func(c store.Config) []string { return append(all(c), list(c)) },
	} {
		t.Run(title, func(t *testing.T) {
			cfg := u.killed()
			remove(t, gone(cfg)...)
			got := found(t, cfg)
			if len(got) == 0 || !strings.Contains(got[0], "LOG") || !strings.Contains(got[0], "sequences ") {
				t.Fatalf("found %q", got)
			}
			var loss *store.LossError
			if _, err := store.Repair(t.Context(), store.RepairConfig{Config: cfg, Now: time.Unix(1, 0)}); !errors.As(err, &loss) {
				t.Errorf("a repair without a source: %v", err)
			}
			accepted := cfg
			accepted.Dir = t.TempDir()
			if err := os.CopyFS(accepted.Dir, os.DirFS(cfg.Dir)); err != nil {
				t.Fatal(err)
			}
			done, err := store.Repair(t.Context(), store.RepairConfig{Config: cfg, From: []string{whole.Dir}, Now: time.Unix(1, 0)})
			if err != nil || len(done.Streams) != 1 || done.Streams[0].Found == 0 || done.Streams[0].Last != 40 {
				t.Fatalf("repaired %+v, %v", done, err)
			}
			if r, err := store.Check(t.Context(), cfg); err != nil || len(r.Damages) > 0 || r.Streams[0].First != 1 || r.Streams[0].Messages != 40 || r.Streams[0].Blocks < last {
				t.Errorf("after the repair: %+v, %v", r, err)
			}
			if _, err := store.Repair(t.Context(), store.RepairConfig{Config: accepted, AcceptLoss: true, Now: time.Unix(1, 0)}); err != nil {
				t.Fatal(err)
			}
			remove(t, filepath.Join(accepted.Dir, "skein-aside"))
			if got := found(t, accepted); got != nil {
				t.Errorf("after a loss was accepted: %q", got)
			}
		})
	}
	s, err := u.js.Stream(t.Context(), "LOG")
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); slices.Contains(blockNames(t, u.cfg), "1.blk"); seq++ {
		if err := s.SecureDeleteMsg(context.Background(), seq); err != nil {
			t.Fatal(err)
		}
	}
	if got := found(t, u.killed()); got != nil {
		t.Errorf("a block whose messages were deleted: %q", got)
	}
}

func blockNames(t *testing.T, cfg store.Config) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(messages(cfg, "LOG"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A stream that was made after the start is missed, unless it held nothing; and what loses nothing is
// repaired without being asked for, at once: bytes behind the last record, a record that was cut off
// though the stream had got further.
func TestRepair_WhatLosesNothing(t *testing.T) {
	u := newUsed(t, jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log.*"}}, jetstream.StreamConfig{Name: "QUEUE", Subjects: []string{"queue"}, Retention: jetstream.WorkQueuePolicy})
	u.publish("log.a", 3)
	u.mark()
	if _, err := u.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KV_later", Subjects: []string{"later"}, MaxMsgsPerSubject: 1}); err != nil {
		t.Fatal(err)
	}
	u.publish("later", 1)
	u.publish("queue", 1)
	s, err := u.js.Stream(t.Context(), "QUEUE")
	if err == nil {
		err = s.DeleteMsg(t.Context(), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	u.mark()
	write := func(name string, bytes []byte) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.Write(bytes)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	repaired := func(cfg store.Config, accept bool) {
		t.Helper()
		if _, err := store.Repair(t.Context(), store.RepairConfig{Config: cfg, AcceptLoss: accept, Now: time.Unix(1, 0)}); err != nil {
			t.Fatal(err)
		}
		if got := found(t, cfg); got != nil {
			t.Errorf("after one repair: %q", got)
		}
	}
	later := u.killed()
	remove(t, filepath.Dir(messages(later, "KV_later")))
	if got := found(t, later); len(got) != 1 || !strings.Contains(got[0], "KV_later") {
		t.Errorf("a stream that was made after the start: %q", got)
	}
	queue := u.killed()
	remove(t, filepath.Dir(messages(queue, "QUEUE")))
	if got := found(t, queue); got != nil {
		t.Errorf("a queue that was empty: %q", got)
	}
	unread := u.killed()
	if err := os.Truncate(filepath.Join(filepath.Dir(messages(unread, "QUEUE")), "meta.inf"), 3); err != nil {
		t.Fatal(err)
	}
	repaired(unread, false)
	stray := u.killed()
	write(filepath.Join(messages(stray, "LOG"), "1.blk"), []byte(strings.Repeat("these bytes are no record", 100)))
	if got := found(t, stray); len(got) != 1 {
		t.Errorf("bytes behind the last record: %q", got)
	}
	repaired(stray, false)
	cut := u.killed()
	if err := os.Truncate(filepath.Join(messages(cut, "LOG"), "1.blk"), 2500<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Repair(t.Context(), store.RepairConfig{Config: cut, Now: time.Unix(1, 0)}); err == nil {
		t.Error("the last message is lost, and the repair does not ask")
	}
	repaired(cut, true)
}

// A stream that was made since the start, such as the bucket of a tenant's pairs, is missed when it is
// gone from a killed store.
func TestCheck_StreamMadeSinceTheStartIsGone(t *testing.T) {
	u := newUsed(t, jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log.*"}}, jetstream.StreamConfig{Name: "KV_kv-acme", Subjects: []string{"$KV.kv-acme.>"}})
	u.publish("log.a", 1)
	u.publish("$KV.kv-acme.a", 1)
	unmarked := u.killed()
	u.mark()
	cfg := u.killed()
	for _, c := range []store.Config{unmarked, cfg} {
		remove(t, filepath.Dir(messages(c, "KV_kv-acme")))
	}
	if got := found(t, unmarked); got != nil {
		t.Errorf("before it was recorded: %q", got)
	}
	if got := found(t, cfg); len(got) != 1 || !strings.Contains(got[0], "KV_kv-acme") {
		t.Errorf("%q", got)
	}
}
