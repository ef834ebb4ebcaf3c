package faults_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// stored is one command of the log.
type stored struct {
	thread  string
	version int64
}

// check compares the log with a history.
func (w *world) check(h *history, first map[string]int64) {
	w.t.Helper()
	w.drained()
	inLog := map[string][]stored{}
	times := map[string]events.Time{} // the last of each thread
	for _, c := range w.commits() {
		for i := range c.Events {
			e := &c.Events[i]
			if e.Time < times[c.Thread] {
				w.t.Errorf("event %d of %s is of %v, and the one before it of %v", e.Version, c.Thread, e.Time, times[c.Thread])
			}
			times[c.Thread] = e.Time
			inLog[e.CommandID] = append(inLog[e.CommandID], stored{c.Thread, e.Version})
		}
	}
	versions := map[string]int64{}
	for id, list := range inLog {
		versions[id] = list[0].version
	}
	for _, what := range h.wrong {
		w.t.Error(what)
	}
	for _, c := range h.writes {
		list := inLog[c.command]
		switch {
		case c.done > 0 && (len(list) != 1 || list[0] != stored{c.thread, c.done}):
			w.t.Errorf("%s was acknowledged as version %d of %s, and the log has it as %v", c.command, c.done, c.thread, list)
		case (c.conflict >= 0 || c.refused) && len(list) > 0:
			w.t.Errorf("%s was refused (conflict %d), and the log has it as %v", c.command, c.conflict, list)
		case c.maybe && len(list) > 1:
			w.t.Errorf("%s was done %d times", c.command, len(list))
		}
	}
	for _, s := range h.submitted {
		if list := inLog[s.command]; len(list) != 1 || list[0].thread != s.thread {
			w.t.Errorf("%s was submitted to %s, and the log has it as %v", s.command, s.thread, list)
		}
	}
	for key, holders := range h.keys {
		if len(holders) != 1 {
			w.t.Errorf("the key %s has the threads %v", key, slices.Sorted(maps.Keys(holders)))
		}
	}
	ops := complete(h.operations(versions), inLog, first, h.now())
	if result := porcupine.CheckOperationsTimeout(threadModel(first), ops, 2*time.Minute); result != porcupine.Ok {
		w.t.Errorf("the history of commits is not linearizable: %s", result)
	}
	w.t.Logf("seed %d: %v, %d commands in the log", w.seed, h.counts, len(inLog))
	w.agrees()
}

// complete adds submitted commands, each of which raises a version at some time.
func complete(ops []porcupine.Operation, inLog map[string][]stored, first map[string]int64, end time.Duration) []porcupine.Operation {
	known := map[string]bool{}
	for _, op := range ops {
		known[op.Input.(write).command] = true
	}
	for id, list := range inLog {
		if _, ours := first[list[0].thread]; !ours || known[id] || list[0].version <= first[list[0].thread] {
			continue
		}
		at := list[0]
		ops = append(ops, porcupine.Operation{
			ClientId: clerks + len(ops), Input: write{thread: at.thread, command: id, expected: -1, conflict: -1},
			Output: write{thread: at.thread, command: id, conflict: -1, done: at.version}, Return: int64(end),
		})
	}
	return ops
}

// drained waits until no submitted command is left.
func (w *world) drained() {
	w.t.Helper()
	ctx := w.soon()
	for {
		stream, err := w.js.Stream(ctx, "SKEIN_COMMANDS")
		if err == nil && stream.CachedInfo().State.Msgs == 0 {
			return
		}
		if ctx.Err() != nil {
			w.t.Fatalf("submitted commands are left: %v", err)
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// commits reads the log.
func (w *world) commits() []*events.Commit {
	w.t.Helper()
	ctx := w.soon()
	stream, err := w.js.Stream(ctx, "SKEIN_LOG")
	must(w.t, err)
	state := stream.CachedInfo().State
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	must(w.t, err)
	var list []*events.Commit
	for seq := uint64(0); seq < state.LastSeq; {
		m, err := consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
		if ctx.Err() != nil {
			w.t.Fatalf("the log cannot be read: %v", err)
		}
		if err != nil {
			continue
		}
		meta, err := m.Metadata()
		must(w.t, err)
		seq = meta.Sequence.Stream
		_, of, ok := events.DefaultNames().ParseLog(m.Subject())
		version, err := strconv.ParseInt(m.Headers().Get(events.HeaderVersion), 10, 64)
		if err != nil || !ok {
			w.t.Fatalf("message %d of the log: %q: %v", seq, m.Subject(), err)
		}
		c, err := events.DecodeCommit(tenant, of, seq, version, m.Headers().Get(events.HeaderChain), m.Data())
		must(w.t, err)
		if events.IsThread(of) {
			list = append(list, c)
		}
	}
	return list
}

// agrees compares everything that is derived with the log, and the copies of every stream
// with each other.
func (w *world) agrees() {
	w.t.Helper()
	ctx := w.soon()
	for {
		out, err := w.skein(ctx, "audit", "verify", "--all-tenants")
		if err == nil {
			break
		}
		if ctx.Err() != nil { // what is derived had two minutes
			w.t.Errorf("skein audit verify: %v\n%s", err, out)
			break
		}
		sleep(ctx, time.Second)
	}
	if out, err := w.skein(w.soon(), "replay", "--verify"); err != nil {
		w.t.Errorf("skein replay --verify: %v\n%s", err, out)
	}
	w.copiesAgree()
}

// skein runs the program. If it does not end in time, its goroutines are printed.
func (w *world) skein(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.bin.Skein, append(args, "--server", w.URL())...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// copiesAgree waits until the copies of every stream are the same on all servers.
func (w *world) copiesAgree() {
	w.t.Helper()
	var differ []string
	for start := time.Now(); time.Since(start) < time.Minute; sleep(w.t.Context(), 250*time.Millisecond) {
		differ = nil
		of := map[string]string{}
		for i := range w.Servers {
			for name, state := range w.copies(i) {
				if had, ok := of[name]; ok && had != state {
					differ = append(differ, fmt.Sprintf("%s: %s, and on %s %s", name, had, w.Servers[i].Name, state))
				}
				of[name] = state
			}
		}
		if len(differ) == 0 && len(of) > 10 {
			return
		}
	}
	w.t.Errorf("copies differ:\n%s", strings.Join(differ, "\n"))
}

// copies returns what one server has of the streams.
func (w *world) copies(i int) map[string]string {
	var page struct {
		Accounts []struct {
			Streams []struct {
				Name  string `json:"name"`
				State struct {
					Messages uint64 `json:"messages"`
					Bytes    uint64 `json:"bytes"`
					First    uint64 `json:"first_seq"`
					Last     uint64 `json:"last_seq"`
				} `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	out := map[string]string{}
	if err := w.Ask(w.t.Context(), i, "/jsz?accounts=true&streams=true", &page); err != nil {
		return out
	}
	for _, account := range page.Accounts {
		for _, s := range account.Streams {
			b, _ := json.Marshal(s.State)
			if !strings.Contains(s.Name, "leases") { // its entries end at a moment of each server's own
				out[s.Name] = string(b)
			}
		}
	}
	return out
}
