package main_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// derivedBlocks returns the blocks of a store's derived streams of some names, each stream's oldest
// first.
func derivedBlocks(t *testing.T, store, streams string) map[string][]string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", streams, "msgs", "*.blk"))
	if err != nil || len(all) == 0 {
		t.Fatalf("the blocks of %s: %v, %v", streams, all, err)
	}
	out := map[string][]string{}
	for _, block := range all {
		stream := filepath.Base(filepath.Dir(filepath.Dir(block)))
		out[stream] = append(out[stream], block)
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b string) int { return len(a) - len(b) })
	}
	return out
}

// A bit is flipped in a compressed block of a read model. The server reads nothing of it, and takes no
// document that replaces one of it. Skein says so, and the next start keeps what can be read.
func TestServe_FlippedBitInAReadModel(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*server){"stopped": (*server).stop, "killed": (*server).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := t.TempDir()
			s := startLogged(t, io.Discard, store)
			s.fill(110)
			s.ok("audit", "verify", "--all-tenants") // derived data is written
			end(s)
			first := derivedBlocks(t, store, "KV_thread_items")["KV_thread_items"][0]
			if raw, err := os.ReadFile(first); err != nil || !bytes.HasPrefix(raw, []byte("cmp")) {
				t.Fatalf("the block is not compressed, %v", err)
			}
			flip(t, first, 0.5)
			if o := run(t, s.env, "", "store", "check", "--store", store); o.code != 3 || !strings.Contains(o.out, filepath.Join("KV_thread_items", "msgs", "1.blk")) {
				t.Errorf("store check: exit %d: %s%s", o.code, o.out, o.err)
			}
			var log bytes.Buffer
			s = startLogged(t, &log, store)
			o := run(t, s.env, "", "replay", "--verify")
			if name == "stopped" {
				if o.code != 1 || !strings.HasPrefix(o.err, "skein: unavailable: stream KV_thread_items cannot be read") {
					t.Errorf("replay --verify: exit %d: %s%s", o.code, o.out, o.err)
				}
				s.stop()
				if !strings.Contains(log.String(), `"stream":"KV_thread_items","time"`) {
					t.Errorf("that it cannot be written is not logged: %s", log.String())
				}
				s = startLogged(t, &log, store)
			} else if o.code != 3 || strings.Count(o.out, "missing: ") != 1 {
				t.Errorf("replay --verify: exit %d: %s%s", o.code, o.out, o.err)
			}
			s.ok("replay")
			s.ok("audit", "verify", "--all-tenants")
			s.stop()
			if !strings.Contains(log.String(), "what can be read of it was kept") {
				t.Errorf("what is damaged is not logged: %s", log.String())
			}
		})
	}
}

// A power cut takes the last block of every derived stream, or a part of it, and leaves a compressed
// one as the last. Everything is derived again, without an operator.
func TestServe_PowerCut(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := startLogged(t, io.Discard, store)
	s.fill(80)
	s.kill()
	for n, left := range []float64{0, 0.5, -1} {
		for _, streams := range []string{"KV_thread_*", "SKEIN_TIMELINE"} {
			for _, list := range derivedBlocks(t, store, streams) {
				last := list[len(list)-1]
				info, err := os.Stat(last)
				if err == nil && left < 0 {
					err = os.Remove(last)
				} else if err == nil {
					err = os.Truncate(last, int64(left*float64(info.Size())))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		s = startLogged(t, io.Discard, store)
		s.fill(40)
		if o := run(t, s.env, "", "audit", "verify", "--all-tenants"); o.code != 0 {
			t.Errorf("cut %d: audit verify: exit %d: %.2000s%s", n, o.code, o.out, o.err)
		}
		s.kill()
	}
}
