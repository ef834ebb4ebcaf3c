package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
	"github.com/skein-threads/skein/internal/openaichat/chattest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
)

const (
	tenant    = "acme"
	agent     = "talker" // the agent that says what was once said
	mostTurns = 8        // of one thread, so that enough threads go on at a time
)

// talks are recorded conversations to repeat: thread n follows conversation n.
type talks struct {
	scripts []*transcript.Conversation
}

// readTalks generates the conversations, the same ones each time.
func readTalks() (*talks, error) {
	raw, _ := chattest.Conversations(3, 60)
	t := &talks{}
	for rec := range openaichat.Read(bytes.NewReader(raw)) {
		if rec.Err != nil {
			return nil, rec.Err
		}
		t.scripts = append(t.scripts, transcript.FromConversation(rec.Conversation))
	}
	return t, nil
}

// talk is one thread and what is said on it.
type talk struct {
	n      int // of the thread
	thread string
	said   []string
}

// some returns threads with that many turns in all.
func (t *talks) some(turns int) (out []talk) {
	for n := 0; turns > 0; n++ {
		said := t.scripts[n%len(t.scripts)].Said()
		said = said[:min(len(said), mostTurns, turns)]
		turns -= len(said)
		out = append(out, talk{n, threadID(n), said})
	}
	return out
}

// threadID returns the id of thread n, in a form from which tools read n.
func threadID(n int) string { return fmt.Sprintf("T-00000000-0000-4000-8000-%012d", n) }

// of returns the conversation of a thread.
func (t *talks) of(thread string) (*transcript.Conversation, error) {
	n := 0
	if _, err := fmt.Sscanf(thread[strings.LastIndex(thread, "-")+1:], "%d", &n); err != nil {
		return nil, err
	}
	return t.scripts[n%len(t.scripts)], nil
}

// register adds the reactor and the tools of the conversations to a process. Both take
// some time, so that processes die during it. ask is for gates.
func (t *talks) register(folder string, ask func(context.Context, string) error) func(*runtime.Registry) error {
	book := ledgerIn(folder)
	return func(r *runtime.Registry) error {
		err := r.AddReactor(agent, runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
			script, err := t.of(in.ThreadID)
			if err != nil {
				return nil, err
			}
			pretendWork(ctx, in.StepID)
			if turn := turnOf(in); in.Iteration > 0 && turn < len(script.Said()) && in.Iteration >= int64(len(script.Steps(turn))) {
				return &runtime.Reaction{}, nil // after its last calls the assistant said nothing
			}
			return script.Reactor().React(ctx, in, out)
		}))
		known := map[string]bool{}
		for _, script := range t.scripts {
			for _, tool := range script.Tools() {
				if name := tool.Spec().Name; !known[name] {
					known[name] = true
					err = errors.Join(err, r.AddTool(booked{name, t, book}))
				}
			}
		}
		return errors.Join(err, addGated(r, book, ask))
	}
}

// turnOf returns the turn that a step belongs to, from 0.
func turnOf(in *runtime.StepInput) int {
	turn := -1
	for i := range in.Items {
		if in.Items[i].Role == events.User {
			turn++
		}
	}
	return turn
}

// pretendWork takes some time, the same for the same work.
func pretendWork(ctx context.Context, what string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what))
	select {
	case <-time.After(time.Duration(5+h.Sum32()%60) * time.Millisecond):
	case <-ctx.Done():
	}
}

// booked is a tool that keeps a ledger, and answers as recorded.
type booked struct {
	name  string
	talks *talks
	book  ledger
}

// idempotent reports whether a tool only looks something up.
func idempotent(name string) bool {
	for _, verb := range []string{"get_", "search_", "list_", "find_", "read_", "lookup_", "calculate", "think"} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	return false
}

func (b booked) Spec() runtime.ToolSpec {
	return runtime.ToolSpec{Name: b.name, Idempotent: idempotent(b.name)}
}

func (b booked) Call(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	script, err := b.talks.of(in.ThreadID)
	if err != nil {
		return runtime.ToolResult{}, err
	}
	if err := b.book.begun(in.Key); err != nil {
		return runtime.ToolResult{}, err
	}
	pretendWork(ctx, in.Key)
	if err := b.book.record(in.Key); err != nil {
		return runtime.ToolResult{}, err
	}
	pretendWork(ctx, in.Key+" done") // what was done is not yet told
	for _, tool := range script.Tools() {
		if tool.Spec().Name == b.name {
			return tool.Call(ctx, in)
		}
	}
	return runtime.ToolResult{}, events.Missing("tool", b.name)
}
