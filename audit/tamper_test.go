package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// publish writes to a subject as any NATS client could that nothing stops.
func (h *house) publish(subject, body string, header nats.Header) uint64 {
	h.t.Helper()
	ack, err := h.log.JetStream().PublishMsg(h.ctx, &nats.Msg{Subject: subject, Header: header, Data: []byte(body)})
	if err != nil {
		h.t.Fatal(err)
	}
	return ack.Sequence
}

// wantOne wants a finding of a kind at a commit of a thread.
func wantOne(t *testing.T, found []Finding, kind Kind, thread string, seq uint64) {
	t.Helper()
	for _, f := range found {
		if f.Kind == kind && f.Thread == thread && f.Seq == seq {
			return
		}
	}
	t.Errorf("no finding of kind %s at %s, commit %d: %v", kind, thread, seq, found)
}

// Whatever a plain client writes to skein.log is found and named: garbage, a copy
// of a commit, an event of its own making, a thread that begins in the middle, a
// claim of a key, and a bit that flips in any byte.
func TestForgedByAPlainClient(t *testing.T) {
	t.Parallel()
	log := "skein.log.acme."
	headers := func(version int, chain string) nats.Header {
		return nats.Header{events.HeaderVersion: {strconv.Itoa(version)}, events.HeaderChain: {chain}, events.HeaderType: {events.BatchContentType}}
	}
	for name, forge := range map[string]func(h *house) (kind Kind, thread string, seq uint64){
		"garbage": func(h *house) (Kind, string, uint64) {
			return KindBroken, threadOne, h.publish(log+threadOne, "boo", nil)
		},
		"a commit again": func(h *house) (Kind, string, uint64) {
			last, err := h.log.Last(h.ctx, "acme", threadOne)
			if err != nil {
				h.t.Fatal(err)
			}
			return KindChain, threadOne, h.publish(log+threadOne, string(last.Body), headers(int(last.Version), last.Chain))
		},
		"a made-up event with a made-up chain": func(h *house) (Kind, string, uint64) {
			last, err := h.log.Last(h.ctx, "acme", threadOne)
			if err != nil {
				h.t.Fatal(err)
			}
			body := strings.NewReplacer(`"threadversion":10`, `"threadversion":11`).Replace(string(last.Body))
			return KindChain, threadOne, h.publish(log+threadOne, body, headers(11, strings.Repeat("0", 64)))
		},
		"a made-up event with the right chain": func(h *house) (Kind, string, uint64) {
			last, err := h.log.Last(h.ctx, "acme", threadOne)
			if err != nil {
				h.t.Fatal(err)
			}
			body := strings.NewReplacer(`"threadversion":10`, `"threadversion":11`).Replace(string(last.Body))
			return KindLink, threadOne, h.publish(log+threadOne, body, headers(11, events.Chain(last.Chain, []byte(body))))
		},
		"a thread without a beginning": func(h *house) (Kind, string, uint64) {
			last, err := h.log.Last(h.ctx, "acme", threadOne)
			if err != nil {
				h.t.Fatal(err)
			}
			body := strings.ReplaceAll(string(last.Body), threadOne, threadTwo)
			return KindVersion, threadTwo, h.publish(log+threadTwo, body, headers(10, events.Chain("", []byte(body))))
		},
		"a claim of a key for a thread that is not there": func(h *house) (Kind, string, uint64) {
			k := events.KeyAggregate("loot")
			c := forgedCommit(h.t, "", k, 1, events.KeyClaimedType, k, events.KeyClaimed{Key: "loot", ThreadID: threadTwo})
			return KindLink, k, h.publish(log+k, string(c.Body), headers(1, c.Chain))
		},
		"a claim under another key's name": func(h *house) (Kind, string, uint64) {
			k := events.KeyAggregate("loot")
			c := forgedCommit(h.t, "", k, 1, events.KeyClaimedType, k, events.KeyClaimed{Key: "gold", ThreadID: threadOne})
			return KindLink, k, h.publish(log+k, string(c.Body), headers(1, c.Chain))
		},
		"a thread with a key that is not its own": func(h *house) (Kind, string, uint64) {
			key := "orders/7"
			c := forgedCommit(h.t, "", threadTwo, 1, events.ThreadCreatedType, threadTwo, events.ThreadCreated{ID: threadTwo, Key: &key, Status: "open"})
			d := forgedCommit(h.t, c.Chain, threadTwo, 2, events.KeyClaimedType, threadTwo, events.KeyClaimed{Key: key, ThreadID: threadTwo})
			h.publish(log+threadTwo, string(c.Body), headers(1, c.Chain))
			return KindLink, threadTwo, h.publish(log+threadTwo, string(d.Body), headers(2, d.Chain))
		},
		"an aggregate that is none": func(h *house) (Kind, string, uint64) {
			return KindBroken, "loot", h.publish(log+"loot", "[]", headers(1, "x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.fill(threadOne)
			kind, thread, seq := forge(h)
			found, _ := h.verify(Options{LogOnly: true})
			wantOne(t, found, kind, thread, seq)
		})
	}
}

func forgedCommit(t *testing.T, prev, id string, version int64, typ events.Type, subject string, data any) *events.Commit {
	t.Helper()
	c, err := events.NewCommit(prev, []events.Event{{
		ID: events.EventID("acme", id, "forged", int(version)), Type: typ, Time: events.TimeOf(time.Now()), Subject: subject,
		Tenant: "acme", ThreadID: id, Version: version, CommandID: "forged", Data: data,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A bit that flips, wherever in a commit, is found at that commit.
func TestAFlippedBit(t *testing.T) {
	t.Parallel()
	const places = 12
	h := newHouse(t)
	ids := map[string]int{}
	for i := range places {
		id := fmt.Sprintf("T-0190a000-0000-7000-8000-0000000001%02d", i)
		ids[id] = i
		h.do("thread.create", `{"threadId":"`+id+`"}`)
		h.do("thread.update", `{"threadId":"`+id+`","data":{"title":"a title"}}`)
	}
	h.stopRelay()
	h.rewrite("SKEIN_LOG", func(l []*nats.Msg) []*nats.Msg {
		for i := 1; i < len(l); i += 2 {
			place := ids[strings.TrimPrefix(l[i].Subject, "skein.log.acme.")]
			l[i].Data[place*(len(l[i].Data)-1)/(places-1)] ^= 1 << (place % 8)
		}
		return l
	})
	found, _ := h.verify(Options{LogOnly: true})
	for id, i := range ids {
		if !slices.ContainsFunc(found, func(f Finding) bool {
			return f.Thread == id && f.Seq == uint64(2*i+2) && (f.Kind == KindChain || f.Kind == KindBroken)
		}) {
			t.Errorf("the bit in commit %d of %s was not found: %v", 2*i+2, id, found)
		}
	}
}

// What a plain client writes to the timeline is found, wherever it stands.
func TestForgedTimeline(t *testing.T) {
	t.Parallel()
	subject := "skein.timeline.acme." + threadOne + ".item.created"
	for name, header := range map[string]nats.Header{
		"without a place":             nil,
		"of a commit long past":       {events.HeaderSeq: {"2"}, events.HeaderVersion: {"3"}},
		"of a commit that is not one": {events.HeaderSeq: {"900"}, events.HeaderVersion: {"901"}},
		"once again after its commit": {events.HeaderSeq: {"9"}, events.HeaderVersion: {"11"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.fill(threadOne)
			h.stopRelay()
			h.publish(subject, `{}`, header)
			for _, o := range []Options{{}, {Tenant: "acme"}, {Tenant: "acme", Threads: []string{threadOne}}} {
				found, _ := h.verify(o)
				if len(found) != 1 || found[0].Kind != KindTimeline || found[0].Thread != threadOne {
					t.Errorf("%+v: %v", o, found)
				}
			}
		})
	}
}

// A timeline from which all of one thread is gone is found, also when only that
// thread is looked at.
func TestTimelineWithoutAThread(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.fill("T-0190a000-0000-7000-8000-000000000003")
	h.stopRelay()
	h.rewrite("SKEIN_TIMELINE", func(l []*nats.Msg) []*nats.Msg { return append(l[:10:10], l[20:]...) })
	found, _ := h.verify(Options{Tenant: "acme", Threads: []string{threadTwo}})
	if len(found) != 9 || found[0].Thread != threadTwo || found[0].Seq != 10 {
		t.Errorf("%v", found)
	}
	if found, _ := h.verify(Options{Tenant: "acme", Threads: []string{threadOne}}); len(found) != 0 {
		t.Error(found)
	}
}

// Documents of a purged thread, its gaps in the log and what the timeline still
// shows are explained by its tombstone; gaps beyond that are named.
func TestGapsAreNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.settle(h.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`).Seq)
	h.await("the purge", func() bool { return len(h.chains(threadTwo)) == 1 })
	if found, _ := h.verify(Options{}); len(found) != 0 {
		t.Fatalf("a purged thread: %v", found)
	}
	const third = "T-0190a000-0000-7000-8000-000000000003"
	first := h.end() + 1
	for range 3 {
		h.do("item.create", `{"threadId":"`+threadOne+`","data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}}`)
	}
	h.fill(third)
	last := h.do("thread.update", `{"threadId":"`+threadOne+`","data":{"title":"x"}}`).Seq
	stream, err := h.log.JetStream().Stream(h.ctx, "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(h.ctx, jetstream.WithPurgeSubject("skein.log.acme."+third)); err != nil {
		t.Fatal(err)
	}
	found, _ := h.verify(Options{LogOnly: true})
	wantKinds(t, found, KindSequence)
	wantOne(t, found, KindSequence, "", first+3)
	if last != int64(first)+3+9 || !strings.Contains(found[0].Detail, "18 messages are missing") {
		t.Errorf("%v", found)
	}
}

// A range tells only of what lies in it, and a thread that is not there is not
// found to be right.
func TestVerifyRange(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.stopRelay()
	h.rewrite("SKEIN_LOG", func(l []*nats.Msg) []*nats.Msg {
		l[1] = replaced(l[1], "hello", "hullo")
		l[10] = replaced(l[10], "hello", "hullo")
		return l
	})
	for name, c := range map[string]struct {
		r       Range
		commits int
		seqs    []uint64
	}{
		"all":         {Range{}, 18, []uint64{2, 11}},
		"from":        {Range{From: 3}, 16, []uint64{11}},
		"to":          {Range{To: 10}, 10, []uint64{2}},
		"between":     {Range{From: 3, To: 10}, 8, nil},
		"one":         {Range{From: 11, To: 11}, 1, []uint64{11}},
		"beyond":      {Range{From: 99}, 0, nil},
		"a time past": {Range{ToTime: time.Now().Add(-time.Hour)}, 0, nil},
		"since then":  {Range{FromTime: time.Now().Add(-time.Hour)}, 18, []uint64{2, 11}},
		"from now on": {Range{FromTime: time.Now().Add(time.Hour)}, 0, nil},
	} {
		found, summary := h.verify(Options{LogOnly: true, Range: c.r})
		var seqs []uint64
		for _, f := range found {
			seqs = append(seqs, f.Seq)
		}
		if summary.Commits != c.commits || len(seqs) != len(c.seqs) || len(seqs) > 0 && seqs[0] != c.seqs[0] {
			t.Errorf("%s: %d commits, findings at %v, want %d, %v", name, summary.Commits, seqs, c.commits, c.seqs)
		}
	}
	// The time of a commit divides them as its sequence does.
	stream, err := h.log.JetStream().Stream(h.ctx, "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(h.ctx, 6)
	if err != nil {
		t.Fatal(err)
	}
	if _, summary := h.verify(Options{LogOnly: true, Range: Range{ToTime: m.Time}}); summary.Commits != 6 || summary.LastSeq != 6 {
		t.Errorf("up to the sixth commit's time: %+v", summary)
	}
	for _, id := range []string{"*", "T-0190a000-0000-7000-8000-00000000dead"} {
		if _, err := Verify(h.ctx, h.log, h.validator, Options{Tenant: "acme", Threads: []string{id}}); err == nil {
			t.Errorf("thread %s was verified", id)
		}
	}
}

// A verification says how far it has got, stage by stage.
func TestVerifyTellsItsProgress(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	var told []Progress
	h.verify(Options{Progress: func(p Progress) { told = append(told, p) }})
	var stages []string
	for _, p := range told {
		if stages == nil || stages[len(stages)-1] != p.Stage {
			stages = append(stages, p.Stage)
		}
	}
	logs := told[len(told)-2:]
	if !slices.Equal(stages, []string{StageTimeline, StageDocuments, StageLog}) || logs[0].Done != 1 || logs[0].Of != 2 || logs[1].Commits != 18 {
		t.Errorf("%+v", told)
	}
}

// A check of what is outside the log receives each commit, and its findings are reported like
// others.
func TestChecksJoin(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	counting := counting{}
	found, _ := h.verify(Options{LogOnly: true, Checks: []Check{counting}})
	if len(found) != 2 || found[0].Kind != KindContent || found[0].Detail != "9 commits" || found[0].Thread == found[1].Thread {
		t.Errorf("%v", found)
	}
	counting.err = errors.New("no object store")
	if _, err := Verify(h.ctx, h.log, h.validator, Options{LogOnly: true, Checks: []Check{counting}}); !errors.Is(err, counting.err) {
		t.Error(err)
	}
}

// counting counts the commits of each thread.
type counting struct{ err error }

func (c counting) Thread(tenant, thread string) ThreadCheck {
	return &counter{counting: c, found: Finding{Kind: KindContent, Tenant: tenant, Thread: thread}}
}

type counter struct {
	counting
	found   Finding
	commits int
}

func (c *counter) Commit(*events.Commit) { c.commits++ }

func (c *counter) End(context.Context) ([]Finding, error) {
	c.found.Detail = strconv.Itoa(c.commits) + " commits"
	return []Finding{c.found}, c.err
}
