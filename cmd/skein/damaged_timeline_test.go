package main_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A bit is flipped in a sealed block of the timeline, which is compressed: the server serves nothing of
// it, and after a crash Skein keeps what can be read of it. The audit names every commit that is not
// shown, and nothing else, and replaying the timeline restores them.
func TestAudit_FlippedBitInTheTimeline(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*server){"stopped": (*server).stop, "killed": (*server).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := t.TempDir()
			s := startLogged(t, io.Discard, store)
			s.fill(110)
			s.ok("audit", "verify", "--all-tenants") // the timeline is complete, and derived data is written
			end(s)
			blocks, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "SKEIN_TIMELINE", "msgs", "*.blk"))
			if err != nil || len(blocks) < 2 {
				t.Fatalf("the timeline has the blocks %v, %v", blocks, err)
			}
			first := filepath.Join(filepath.Dir(blocks[0]), "1.blk")
			if raw, err := os.ReadFile(first); err != nil || !bytes.HasPrefix(raw, []byte("cmp")) {
				t.Fatalf("the block is not compressed, %v", err)
			}
			flip(t, first, 0.5)
			if o := run(t, s.env, "", "store", "check", "--store", store); o.code != 3 || !strings.Contains(o.out+o.err, filepath.Join("SKEIN_TIMELINE", "msgs", "1.blk")) {
				t.Errorf("store check: exit %d: %s%s", o.code, o.out, o.err)
			}
			s = startLogged(t, io.Discard, store)
			o := run(t, s.env, "", "audit", "verify", "--all-tenants")
			shown := regexp.MustCompile(`330 events, (\d+) events of the timeline`).FindStringSubmatch(o.out)
			if o.code != 3 || shown == nil || !strings.Contains(o.out, "skein replay timeline") {
				t.Fatalf("audit verify: exit %d: %s%s", o.code, o.out, o.err)
			}
			left := regexp.MustCompile(`(?m)^timeline: acme/T-\S+, commit \d+: `).FindAllString(o.out, -1)
			if n, err := strconv.Atoi(shown[1]); err != nil || n >= 330 || len(left) < (330-n)/3 || len(left) > 330-n {
				t.Errorf("%s of 330 events are shown, and %d commits are named: %s", shown[1], len(left), o.out)
			}
			for _, args := range [][]string{{"--tenant", "acme"}, {"--tenant", "acme", regexp.MustCompile(`T-[^,]+`).FindString(left[0])}} {
				want := left
				if len(args) > 2 {
					want = left[:1]
				}
				o := run(t, s.env, "", append([]string{"audit", "verify"}, args...)...)
				if got := regexp.MustCompile(`(?m)^timeline: acme/T-\S+, commit \d+: `).FindAllString(o.out, -1); o.code != 3 || len(got) < len(want) || got[0] != want[0] || len(args) == 2 && len(got) != len(want) {
					t.Errorf("audit verify %v: exit %d, %d commits are named, want %d: %s", args, o.code, len(got), len(want), o.err)
				}
			}
			if o := run(t, s.env, "", "replay", "timeline", "--verify"); o.code != 3 || strings.Count(o.out, "timeline: ") != len(left) {
				t.Errorf("replay timeline --verify: exit %d: %s%s", o.code, o.out, o.err)
			}
			s.ok("replay", "timeline")
			if text := s.ok("audit", "verify", "--all-tenants"); !strings.Contains(text, "330 events, 330 events of the timeline") {
				t.Errorf("after the timeline was replayed: %s", text)
			}
			if n := strings.Count(s.ok("tail", "--follow=false"), "\n"); n != 330 {
				t.Errorf("%d events of 330 are shown after the timeline was replayed", n)
			}
			s.stop()
		})
	}
}
