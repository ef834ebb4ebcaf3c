package faults_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// write is a command on a thread as its client saw it.
type write struct {
	clerk    int
	thread   string
	command  string // its id
	expected int64  // the version it asked for; -1: none

	call, back time.Duration // since the beginning; back 0: it was given up
	done       int64         // the version of its event; 0: it was not done, or that is not known
	conflict   int64         // refused: the thread had this version; -1: it was not refused so
	refused    bool          // given up after a refusal that said that nothing was written
	maybe      bool          // given up while it was not known whether it was done
}

// submitted is a command that JetStream has acknowledged.
type submitted struct{ thread, command string }

// history is what all clients saw. It is safe for concurrent use.
type history struct {
	name  string // what its commands' ids begin with
	begun time.Time

	mu        sync.Mutex // guards what follows
	writes    []write
	submitted []submitted
	keys      map[string]map[string]bool // the threads that were answered for a key
	latest    map[string]int64           // the newest version of each thread in any answer
	wrong     []string                   // faults that are certain
	counts    map[string]int
}

func newHistory(name string) *history {
	return &history{name: name, begun: time.Now(), keys: map[string]map[string]bool{}, latest: map[string]int64{}, counts: map[string]int{}}
}

func (h *history) now() time.Duration { return time.Since(h.begun) }

func (h *history) add(w write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, w)
	h.latest[w.thread] = max(h.latest[w.thread], w.done, w.conflict)
}

func (h *history) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

func (h *history) version(thread string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest[thread]
}

func (h *history) key(key, thread string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys[key] == nil {
		h.keys[key] = map[string]bool{}
	}
	h.keys[key][thread] = true
}

// operations returns the history for porcupine. Of a command whose outcome is unknown the
// log tells: it ended with the run, or it was never executed.
func (h *history) operations(inLog map[string]int64) []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := time.Since(h.begun)
	var list []porcupine.Operation
	for _, w := range h.writes {
		if w.maybe {
			if w.done = inLog[w.command]; w.done == 0 {
				continue
			}
			w.back = end
		}
		if w.refused {
			continue
		}
		list = append(list, porcupine.Operation{ClientId: w.clerk, Input: w, Call: int64(w.call), Output: w, Return: int64(w.back)})
	}
	return list
}

// threadModel models a thread's version, which every command raises by one.
func threadModel(first map[string]int64) porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			byThread := map[string][]porcupine.Operation{}
			for _, op := range all {
				name := op.Input.(write).thread
				byThread[name] = append(byThread[name], op)
			}
			var parts [][]porcupine.Operation
			for _, part := range byThread {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			in, out, version := input.(write), output.(write), state.(int64)
			if version == 0 {
				version = first[in.thread]
			}
			switch {
			case out.conflict >= 0:
				return in.expected >= 0 && in.expected != version && out.conflict == version, version
			case in.expected >= 0 && in.expected != version:
				return false, version
			}
			return out.done == version+1, version + 1
		},
		DescribeOperation: func(_, output any) string {
			w := output.(write)
			return fmt.Sprintf("%s expects %d: done %d, conflict %d", w.command, w.expected, w.done, w.conflict)
		},
	}
}
