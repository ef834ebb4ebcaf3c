package thread

import (
	"bytes"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

const (
	tenant   = "acme"
	threadID = "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"
	otherID  = "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405163"
)

// dawn is when every story begins.
var dawn = events.TimeOf(time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC))

func raw(s string) events.JSON { return events.JSON(s) }

func to[T any](v T) *T { return &v }

// story tells a thread's life command by command, and keeps two states of it:
// one that decides, and one that is made from the stored bytes.
type story struct {
	t       testing.TB
	thread  string
	state   *State
	replica *State
	ledger  Ledger // holds each stored event against its precondition
	told    int    // commands
	seq     uint64
	now     events.Time
	encoded []byte // the state as it was stored last
}

func newStory(t testing.TB) *story {
	return &story{t: t, thread: threadID, state: &State{}, replica: &State{}, now: dawn}
}

// addItems adds stored messages to the state.
func (k *story) addItems(n int) {
	for i := range n {
		k.state.setItem("itm_"+strconv.Itoa(i), itemState{Context: k.state.ContextID(), Type: events.Message, Status: events.ItemStored})
	}
}

// begun is a thread with its default context, an item, an execution of it, a
// step of that and one part.
func begun(t testing.TB) *story {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(message("itm_user", "Where is my order?"))
	k.do(events.CreateExecution{ID: "exe_1", TriggerItemID: "itm_user", ReactionItemID: "itm_reply"})
	k.do(events.CreateStep{ID: "stp_1", ExecutionID: "exe_1"})
	k.do(events.PutPart{StepID: "stp_1", Idx: to(int64(0)), Part: raw(`{"n":0}`)})
	return k
}

func message(id, text string) events.CreateItem {
	return events.CreateItem{Item: events.NewItem{
		ID: id, Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"` + text + `"}]`),
	}}
}

// nameOf returns the name of the command with data of that type.
func nameOf(t testing.TB, data any) string {
	t.Helper()
	switch data.(type) {
	case events.CommandRejected:
		return "command.rejected"
	case StartEffect, CompleteEffect, FailEffect, ExpireState:
		return "effect.inside"
	}
	if name, ok := commandNames()[reflect.TypeOf(data)]; ok {
		return name
	}
	switch data.(type) {
	case ClaimRun, ReactStep, EndCalls, HoldCalls, ResumeCalls, FailRun, RecordRun, AwaitWorkers, ParkRun, WakeRun, ReactFor, ArchiveThread:
		return "run.work"
	}
	t.Fatalf("no command takes %T", data)
	return ""
}

// commandNames are the commands of the catalog by the type of their data.
var commandNames = sync.OnceValue(func() map[reflect.Type]string {
	names := map[reflect.Type]string{}
	for _, c := range events.Commands() {
		names[reflect.TypeOf(c.New())] = c.Name
	}
	return names
})

// command makes the next command of the story.
func (k *story) command(data ...any) *Command {
	k.t.Helper()
	k.told++
	k.now += 1000
	c := &Command{
		ID: "cmd-" + strconv.Itoa(k.told), Tenant: tenant, ThreadID: k.thread, Time: k.now,
		ShareKey: []byte("key"), Actor: "user:ada", Batch: len(data) > 1, Known: Known{Skills: map[string]bool{"refunds": true}},
	}
	for _, d := range data {
		c.Parts = append(c.Parts, Part{Name: nameOf(k.t, d), Data: d})
		if _, claims := d.(events.ClaimWriter); claims {
			c.Token = events.WriterToken([]byte("key"), tenant, c.ID)
		}
	}
	return c
}

// do does a command, of several parts if several are given, and stores it.
func (k *story) do(data ...any) []events.Event {
	k.t.Helper()
	made, err := k.try(k.command(data...))
	if err != nil {
		k.t.Fatalf("%T was refused: %v", data[0], err)
	}
	return made
}

// try decides a command and stores what it made, or checks that the refusal
// changed nothing.
func (k *story) try(c *Command) ([]events.Event, error) {
	k.t.Helper()
	if _, creates := c.Parts[0].Data.(events.CreateThread); creates && c.Groups() {
		return grouped(k.t, c, k)
	}
	before := k.bytes()
	draft := NewDraft(k.state)
	made, err := draft.Do(c)
	if after := encoded(k.t, k.state); !bytes.Equal(before, after) {
		k.t.Fatalf("deciding changed the state\nfrom %s\nto   %s", before, after)
	}
	if err != nil {
		if len(made) > 0 || len(draft.Events()) > 0 {
			k.t.Fatalf("a refused command made %v", made)
		}
		return nil, err
	}
	if len(made) > 0 { // else it changed nothing, and makes no commit
		k.store(draft)
	}
	return made, nil
}

// store keeps what a draft made, as the log would.
func (k *story) store(draft *Draft) *events.Commit {
	k.t.Helper()
	commit, err := events.NewCommit(k.state.Chain, draft.Events())
	if err != nil {
		k.t.Fatal(err)
	}
	k.seq++
	commit.Seq = k.seq
	if err := holds(k.state, draft.Events()); err != nil {
		k.t.Fatalf("what was decided could not follow: %v", err)
	}
	draft.Apply(commit)
	read, err := events.DecodeCommit(commit.Tenant, commit.Thread, commit.Seq, commit.Version, commit.Chain, commit.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	k.ledger.Commit(read, func(e *events.Event, err error) {
		k.t.Fatalf("what was stored could not follow: %s, version %d: %v", e.Type, e.Version, err)
	})
	Apply(k.replica, read)
	k.encoded = encoded(k.t, k.state)
	if stored := encoded(k.t, k.replica); !bytes.Equal(k.encoded, stored) {
		k.t.Fatalf("the state that decided differs from the stored one\n%s\n%s", k.encoded, stored)
	}
	return commit
}

// bytes returns the state as it was when the story last stored something.
func (k *story) bytes() []byte {
	k.t.Helper()
	if k.encoded == nil {
		k.encoded = encoded(k.t, k.state)
	}
	return k.encoded
}

// refuse runs a command that must be refused, and returns the refusal.
func (k *story) refuse(data ...any) *events.Error {
	k.t.Helper()
	made, err := k.try(k.command(data...))
	if err == nil {
		k.t.Fatalf("%T was not refused; it made %v", data[0], made)
	}
	return events.AsError(err)
}

func encoded(t testing.TB, s *State) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fact is the expected part of an event, without its envelope.
type fact struct {
	Type        events.Type
	Subject     string
	Correlation string
	Data        any
}

func facts(made []events.Event) []fact {
	out := make([]fact, len(made))
	for i, e := range made {
		out[i] = fact{e.Type, e.Subject, e.Correlation, e.Data}
	}
	return out
}

// want compares events with what was expected of them, data and all.
func want(t testing.TB, made []events.Event, expected ...fact) {
	t.Helper()
	got := facts(made)
	if len(got) != len(expected) {
		t.Fatalf("%d events, want %d: %+v", len(got), len(expected), got)
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], expected[i]) {
			t.Errorf("event %d is\n%+v, want\n%+v", i, got[i], expected[i])
		}
	}
}

// wantRefusal compares a refusal with the code and the details expected.
func wantRefusal(t testing.TB, got *events.Error, code events.Code, details events.ErrorDetails) {
	t.Helper()
	if got.Code != code || got.Details == nil || !reflect.DeepEqual(*got.Details, details) {
		t.Errorf("refused with %v, details %+v; want %s with %+v", got, got.Details, code, details)
	}
}

// allowed lists the targets of a refused move, as the details have it.
func allowed[S ~string](m events.Machine[S], from S) []string {
	out := []string{}
	for _, s := range m.Allowed(from) {
		out = append(out, string(s))
	}
	return out
}
