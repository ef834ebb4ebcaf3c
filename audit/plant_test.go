package audit

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// planted is a tampering that was planted on a thread of its own, and where it
// must be found.
type planted struct {
	name   string
	thread string
	seq    uint64 // 0: anywhere in the thread
	kinds  []Kind // any of them
}

// plot plants tamperings, each on a thread of its own, and checks that each is
// found where it is.
type plot struct {
	*house
	n    int
	list []planted
}

func newPlot(t *testing.T) *plot { return &plot{house: newHouse(t)} }

// next returns the id of the next thread.
func (p *plot) next() string {
	p.n++
	return fmt.Sprintf("T-0190a000-0000-7000-8000-%012d", p.n)
}

// tale is a thread as Skein writes it, decided and encoded, and not stored.
type tale struct {
	t       testing.TB
	id      string
	state   *thread.State
	at      events.Time
	commits []*events.Commit
}

func newTale(t testing.TB, id string) *tale {
	return &tale{t: t, id: id, state: &thread.State{}, at: events.TimeOf(time.Now().Add(-time.Hour))}
}

// tell decides one command after the other, each a commit.
func (k *tale) tell(list ...any) *tale {
	k.t.Helper()
	for _, data := range list {
		k.at += 1000
		draft := thread.NewDraft(k.state)
		c := &thread.Command{
			ID: fmt.Sprintf("cmd-%d", len(k.commits)), Tenant: "acme", ThreadID: k.id, Time: k.at, Actor: "user:ada",
			Parts: []thread.Part{{Name: "test", Data: data}},
		}
		made, err := draft.Do(c)
		if err != nil || len(made) == 0 {
			k.t.Fatalf("%T: %v, %d events", data, err, len(made))
		}
		commit, err := events.NewCommit(k.state.Chain, made)
		if err != nil {
			k.t.Fatal(err)
		}
		draft.Apply(commit)
		k.commits = append(k.commits, commit)
	}
	return k
}

func raw(text string) events.JSON { return events.JSON(text) }

func to[T any](v T) *T { return &v }

func item(id string) events.CreateItem {
	return events.CreateItem{Item: events.NewItem{ID: id, Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"hello"}]`)}}
}

const effectOne = "0190a000-0000-7000-8000-00000000e001"

// whole is a thread with something of everything, 18 commits of it.
func whole(t testing.TB, id string) *tale {
	return newTale(t, id).tell(
		events.CreateThread{AgentID: "triage", Title: "one"},
		item("itm_u1"),
		events.CreateContext{ID: "ctx_a", Key: "a", Content: raw(`{"n":1}`)},
		events.CreateExecution{ID: "exe_1", TriggerItemID: "itm_u1", ReactionItemID: "itm_r1"},
		events.CreateStep{ID: "stp_1", ExecutionID: "exe_1"},
		events.PutPart{StepID: "stp_1", Idx: to(int64(0)), Type: "output_text", Part: raw(`{"type":"output_text","text":"hi"}`)},
		events.SetStepStatus{StepID: "stp_1", To: events.StepCompleted},
		events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionCompleted},
		events.FinishThread{ExecutionID: "exe_1"},
		events.CreateDirectory{Path: "/d"},
		events.WriteFile{Path: "/d/f", External: "s3://x/f", MimeType: "text/plain"},
		events.WriteFile{Path: "/g", External: "s3://x/g", MimeType: "text/plain"},
		events.ScheduleEffect{ID: effectOne, Name: "remind"},
		events.EditMessage{ItemID: "itm_u1", Silent: to(true)},
		events.SetContext{Content: raw(`{"a":1}`)},
		events.AssignAgent{AgentID: "billing"},
		events.RecordTrace{Kind: events.TraceLog, Text: "x", ExecutionID: "exe_1"},
		events.UpdateThread{Title: to("two")},
	)
}

// running is a thread with a run whose call waits for an approval, and another
// call that ended.
func running(t testing.TB, id string) *tale {
	k := newTale(t, id).tell(
		events.CreateThread{AgentID: "triage"},
		events.ReactThread{Text: to("refund me"), ExecutionID: "exe_1", ReactionItemID: "itm_r1"},
		thread.ClaimRun{ExecutionID: "exe_1", Worker: "w-1"},
	)
	run, _ := k.state.Run("exe_1")
	call := func(id, name string) (events.ToolCall, events.JSON) {
		return events.ToolCall{CallID: id, Name: name, Arguments: raw(`{}`)}, raw(`{"type":"tool-` + name + `","toolCallId":"` + id + `"}`)
	}
	refund, part1 := call("call_1", "refund")
	find, part2 := call("call_2", "find")
	k.tell(thread.ReactStep{
		ExecutionID: "exe_1", Token: 1, StepID: run.StepID, Parts: []events.JSON{part1, part2}, Types: []string{"tool-refund", "tool-find"},
		Calls: []events.ToolCall{refund, find}, Approve: []string{"call_1"},
	})
	return k.tell(events.ReactThread{Text: to("and then?")}, thread.EndCalls{ // the message waits
		ExecutionID: "exe_1", Token: 1, StepID: run.StepID,
		Results: []thread.CallResult{{CallID: "call_2", Part: part2, Output: raw(`"found"`)}},
	})
}

// message is a commit as the log has it.
func message(c *events.Commit) *nats.Msg {
	return &nats.Msg{Subject: "skein.log.acme." + c.Thread, Data: c.Body, Header: nats.Header{
		events.HeaderVersion: {strconv.FormatInt(c.Version, 10)}, events.HeaderChain: {c.Chain}, events.HeaderType: {events.BatchContentType},
	}}
}

// messages are the commits of a tale as the log has them.
func (k *tale) messages() []*nats.Msg {
	var list []*nats.Msg
	for _, c := range k.commits {
		list = append(list, message(c))
	}
	return list
}

// rechain computes the chains again, as a forger would.
func rechain(list []*nats.Msg) {
	chain := ""
	for _, m := range list {
		chain = events.Chain(chain, m.Data)
		m.Header.Set(events.HeaderChain, chain)
	}
}

// write stores messages, and tells at which sequence the n-th of them stands.
func (p *plot) write(list []*nats.Msg, n int) (seq uint64) {
	p.t.Helper()
	futures := make([]jetstream.PubAckFuture, len(list))
	for i, m := range list {
		var err error
		if futures[i], err = p.log.JetStream().PublishMsgAsync(m); err != nil {
			p.t.Fatal(err)
		}
	}
	for i, f := range futures {
		select {
		case ack := <-f.Ok():
			if i == n {
				seq = ack.Sequence
			}
		case err := <-f.Err():
			p.t.Fatal(err)
		}
	}
	return seq
}

// plant writes a thread and notes what must be found at its n-th commit.
func (p *plot) plant(name, id string, list []*nats.Msg, n int, kinds ...Kind) {
	p.t.Helper()
	p.list = append(p.list, planted{name: name, thread: id, seq: p.write(list, n), kinds: kinds})
}

// look verifies, and checks that each tampering is found at its place, and that
// nothing is found on threads that were left alone.
func (p *plot) look(o Options) {
	p.t.Helper()
	found, _ := p.verify(o)
	byThread := map[string][]Finding{}
	for _, f := range found {
		byThread[f.Thread] = append(byThread[f.Thread], f)
	}
	missed := 0
	for _, want := range p.list {
		hit := len(want.kinds) == 0 && len(byThread[want.thread]) == 0
		for _, f := range byThread[want.thread] {
			for _, kind := range want.kinds {
				hit = hit || f.Kind == kind && (want.seq == 0 || f.Seq == want.seq)
			}
		}
		if !hit {
			missed++
			p.t.Errorf("%s: not found as %v at commit %d: %v", want.name, want.kinds, want.seq, byThread[want.thread])
		}
		delete(byThread, want.thread)
	}
	for id, list := range byThread {
		p.t.Errorf("%s was left alone: %v", id, list)
	}
	p.t.Logf("%d tamperings planted, %d found", len(p.list), len(p.list)-missed)
}

// changeBody returns a commit's body with the n-th event changed as a text.
func changeEvent(m *nats.Msg, change func(event string) string) {
	body := string(m.Data)
	end := strings.Index(body, `},{"specversion"`)
	if end < 0 {
		end = len(body) - 2
	}
	m.Data = []byte("[" + change(body[1:end+1]) + body[end+1:])
}
