package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/eventlog/pairs"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

func open(t *testing.T) *eventlog.Log {
	t.Helper()
	log, err := eventlog.Open(natstest.Connect(t, natstest.Start(t)), eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

func set(t *testing.T, s *pairs.Store, key string, ttl int64) {
	t.Helper()
	_, err := s.Set(t.Context(), "acme", "", events.SetKV{Bucket: "b", Key: key, Value: events.JSON(`"` + strings.Repeat("x", 1<<10) + `"`), TTLSeconds: ttl})
	if err != nil {
		t.Error(err)
	}
}

func silent(string, int64) {}

// write backs up a log.
func write(t *testing.T, log *eventlog.Log) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "backup")
	if _, err := backup.Write(t.Context(), log, dir, silent); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is removed while a stream is copied is missing in the copy, and no loss. What grows too
// old before or after it is restored neither.
func TestWrite_WhileMessagesAreRemoved(t *testing.T) {
	log := open(t)
	if err := log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := pairs.On(log.Streams(), pairs.Config{})
	for i := range 300 {
		set(t, store, fmt.Sprint(i), 0)
	}
	set(t, store, "short", 1)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for w := range 4 {
		writing.Go(func() {
			for i := w; ; i += 4 {
				select {
				case <-stop:
					return
				default:
					set(t, store, fmt.Sprint(i%300), 0)
				}
			}
		})
	}
	var dir string
	for range 5 {
		dir = write(t, log)
	}
	close(stop)
	writing.Wait()
	other := open(t)
	if _, err := backup.Restore(t.Context(), other, dir, 0, silent); err != nil {
		t.Fatal(err)
	}
	var unfinished *assets.UnfinishedError
	if err := assets.CheckWhole(t.Context(), other.Streams()); !errors.As(err, &unfinished) {
		t.Errorf("before the restore was finished: %v", err)
	}
	if err := errors.Join(backup.Finish(t.Context(), other), assets.CheckWhole(t.Context(), other.Streams())); err != nil {
		t.Error(err)
	}
	got, err := pairs.On(other.Streams(), pairs.Config{}).List(t.Context(), "acme", events.ListKV{Bucket: "b", Limit: new(int64(1000))})
	if err != nil || len(got.Keys) < 300 {
		t.Errorf("%d keys, %v", len(got.Keys), err)
	}
}

// A restored log is another one: positions of the copied log are none in it, and the other way round.
func TestRestore_IsAnotherLog(t *testing.T) {
	log := open(t)
	if err := log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := func(log *eventlog.Log) string {
		t.Helper()
		end, err := log.End(t.Context())
		if err != nil || !events.ValidID(end.Incarnation) {
			t.Fatalf("%q, %v", end.Incarnation, err)
		}
		return end.Incarnation
	}
	seen := map[string]bool{name(log): true}
	if err := log.Ensure(t.Context()); err != nil || !seen[name(log)] {
		t.Errorf("the log has another name after a second start (%v)", err)
	}
	dir := write(t, log)
	for range 2 {
		other := open(t)
		if _, err := backup.Restore(t.Context(), other, dir, 0, silent); err != nil {
			t.Fatal(err)
		}
		restored := name(other)
		if seen[restored] {
			t.Errorf("the restored log has the name %s of another one", restored)
		}
		seen[restored] = true
		if err := other.Ensure(t.Context()); err != nil || name(other) != restored {
			t.Errorf("the restored log has another name after a start: %s, %s (%v)", restored, name(other), err)
		}
		dir = write(t, other) // a copy of the copy
	}
}

// A restored stream with less than its copy, and a copy that is not what the manifest says, are
// refused, and the server stays one that no Skein uses.
func TestRestore_ChecksWhatIsThere(t *testing.T) {
	log := open(t)
	if err := log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := pairs.On(log.Streams(), pairs.Config{})
	for i := range 10 {
		set(t, store, fmt.Sprint(i), 0)
	}
	dir := write(t, log)
	name := filepath.Join(dir, "manifest.json")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(stream map[string]any){
		"the restored stream KV_kv-acme has 5 messages, and its copy has 10": func(s map[string]any) {
			config := s["config"].(map[string]any)
			config["max_msgs"], config["discard"] = 5, "old"
		},
		"holds 10 messages, sequences 1 to 10, and manifest.json says 11, sequences 1 to 10": func(s map[string]any) { s["messages"] = 11 },
	} {
		t.Run(what, func(t *testing.T) {
			var manifest map[string]any
			if err := json.Unmarshal(whole, &manifest); err != nil {
				t.Fatal(err)
			}
			for _, s := range manifest["streams"].([]any) {
				if s := s.(map[string]any); s["name"] == assets.PairsStream(events.DefaultNames(), "acme") {
					change(s)
				}
			}
			raw, err := json.Marshal(manifest)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			other := open(t)
			ctx, cancel := context.WithTimeoutCause(t.Context(), natstest.Patience, errors.New("too long"))
			defer cancel()
			if _, err := backup.Restore(ctx, other, dir, 0, silent); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("restored: %v", err)
			}
			var unfinished *assets.UnfinishedError
			if err := assets.CheckWhole(t.Context(), other.Streams()); !errors.As(err, &unfinished) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
