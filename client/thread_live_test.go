package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// listen subscribes to the live events of a thread.
func (s *suite) listen(c *client.Client, thread string) *client.Live {
	s.Helper()
	live, err := c.LiveEvents(s.Context(), thread)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(live.Close)
	return live
}

func (s *suite) next(live *client.Live) events.LiveEvent {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	e, err := live.Next(ctx)
	if err != nil {
		s.Fatal(err)
	}
	return e
}

func (s *suite) emit(st *client.ThreadState, event string, data any) {
	s.Helper()
	if err := st.Emit(s.Context(), event, data); err != nil {
		s.Fatal(err)
	}
}

// record records a log line.
func (s *suite) record(st *client.ThreadState, r events.RecordTrace) {
	s.Helper()
	r.Kind = events.TraceLog
	s.do(s.c.Send(s.Context(), st.ThreadID(), r))
}

func (s *suite) logs(st *client.ThreadState, o events.GetLogsOptions) []events.Log {
	s.Helper()
	now, err := s.c.UpToDate(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	fresh, err := now.Thread(s.Context(), st.ThreadID())
	if err != nil {
		s.Fatal(err)
	}
	lines, err := fresh.GetLogs(s.Context(), o)
	if err != nil {
		s.Fatal(err)
	}
	return lines
}

func said(lines []events.Log) string {
	var all []string
	for _, l := range lines {
		all = append(all, l.Message)
	}
	return strings.Join(all, " ")
}

func liveRequirements() []requirement {
	n := func(i int) *int64 { return ptr(int64(i)) }
	return []requirement{
		{"SA-53", func(s *suite) { // C-35
			st := s.thread()
			for i := range 5 {
				s.record(st, events.RecordTrace{Text: fmt.Sprintf("l%d", i)})
			}
			s.same("the lines", said(s.logs(st, events.GetLogsOptions{})), "l4 l3 l2 l1 l0")
			s.same("other threads' lines", len(s.logs(s.thread(), events.GetLogsOptions{})), 0)
		}},
		{"SA-54", func(s *suite) {
			st := s.thread()
			ask := s.say(st, "x")
			exe := s.do(s.c.Send(s.Context(), st.ThreadID(), events.CreateExecution{TriggerItemID: ask.ID})).Result.ExecutionID
			step := s.do(s.c.Send(s.Context(), st.ThreadID(), events.CreateStep{ExecutionID: exe})).Result.StepID
			before := time.Now().UnixMicro()
			s.record(st, events.RecordTrace{Text: "a"})
			s.record(st, events.RecordTrace{Text: "b", Level: events.LogError, ExecutionID: exe, SpanID: step, Data: events.JSON(`{"ms":3}`)})
			s.record(st, events.RecordTrace{Text: "c", Level: events.LogWarn, ExecutionID: exe})
			s.do(s.c.Send(s.Context(), st.ThreadID(), events.RecordTrace{Kind: events.TraceUsage, ExecutionID: exe, Data: events.JSON(`{}`)}))
			for want, o := range map[string]events.GetLogsOptions{
				"c b a": {}, "c": {Limit: n(1)}, "a": {Offset: n(2)}, "a b": {Order: "asc", Limit: n(2)}, "b": {Level: events.LogError}, "c b": {FlowID: exe}, "": {Limit: n(0)},
			} {
				s.same(fmt.Sprintf("%+v", o), said(s.logs(st, o)), want)
			}
			s.same("the first line's level", s.logs(st, events.GetLogsOptions{Order: "asc"})[0].Level, events.LogInfo)
			line := s.logs(st, events.GetLogsOptions{Level: events.LogError})[0]
			if line.CreatedAt < before || line.CreatedAt > time.Now().UnixMicro() {
				s.Errorf("createdAt is %d", line.CreatedAt)
			}
			line.ID, line.CreatedAt = "x", 1
			raw, err := json.Marshal(line)
			if err != nil {
				s.Fatal(err)
			}
			s.same("the line", string(raw), `{"id":"x","level":"error","message":"b","data":{"ms":3},"flowId":"`+exe+`","step":"`+step+`","createdAt":1}`)
			_, err = s.c.Send(s.Context(), st.ThreadID(), events.RecordTrace{Kind: events.TraceLog, Text: "x", ExecutionID: "exe_nobody"})
			s.refused(err, events.NotFound)
			_, err = s.c.Send(s.Context(), st.ThreadID(), events.RecordTrace{Kind: events.TraceLog})
			s.refused(err, events.InvalidRequest)
		}},
		{"SA-87", func(s *suite) { emits(s) }},
		{"SA-88", func(s *suite) {
			var warned []string
			c, err := client.Connect(s.url, client.Options{Tenant: "acme", Warn: func(m string) { warned = append(warned, m) }})
			if err != nil {
				s.Fatal(err)
			}
			defer c.Close()
			st, err := c.Thread(s.Context(), s.thread().ThreadID())
			if err != nil {
				s.Fatal(err)
			}
			live := s.listen(s.c, st.ThreadID())
			s.emit(st, "progress_2", 1)
			s.same("warnings", len(warned), 0)
			for i, odd := range []string{"Progress", "pro.gress", "> *", "*", "größe"} {
				s.emit(st, odd, 1)
				s.same("warnings", len(warned), i+1)
			}
			for _, want := range []string{"progress_2", "Progress", "pro.gress", "> *", "*", "größe"} {
				s.same("the name", s.next(live).Event, want)
			}
			for _, bad := range []string{"", strings.Repeat("x", 129), "\xff"} {
				s.refused(st.Emit(s.Context(), bad, 1), events.InvalidRequest)
			}
		}},
		{"SA-89", func(s *suite) {
			st := s.thread()
			live := s.listen(s.c, st.ThreadID())
			for _, bad := range []any{make(chan int), func() {}, map[string]any{"f": func() {}}, events.JSON(`{`)} {
				s.refused(st.Emit(s.Context(), "bad", bad), events.InvalidRequest)
			}
			s.refused(st.Emit(s.Context(), "big", strings.Repeat("x", 5<<20)), events.PayloadTooLarge)
			s.emit(st, "good", map[string]any{"step": 3, "list": []int{1}})
			e := s.next(live) // nothing refused was sent
			s.same("the data", string(e.Data), `{"list":[1],"step":3}`)
			s.same("n", e.N, int64(1))
		}},
		{"SA-90", func(s *suite) { // live events are not stored, and the envelope adds no secret: it has these fields
			st := s.thread()
			live := s.listen(s.c, st.ThreadID())
			s.emit(st, "progress", nil)
			raw, err := json.Marshal(s.next(live))
			if err != nil {
				s.Fatal(err)
			}
			var fields map[string]any
			if err := json.Unmarshal(raw, &fields); err != nil || len(fields) != 6 {
				s.Errorf("%s, %v", raw, err)
			}
		}},
		{"SA-150", func(s *suite) {
			values := s.thread().RuntimeContext()
			if nc, ok := values["nats"].(*nats.Conn); !ok || !nc.IsConnected() {
				s.Errorf("nats is %v", values["nats"])
			}
			if _, ok := values["js"].(jetstream.JetStream); !ok {
				s.Errorf("js is %v", values["js"])
			}
		}},
		{"SA-152", func(s *suite) { // names map to values of any type: the runtime fills in the usual entries
			var values map[string]any = s.thread().RuntimeContext()
			if _, ok := values["process"]; ok {
				s.Error("there is a Node process")
			}
		}},
		{"SA-153", func(s *suite) {
			st := s.thread()
			c, ok := st.RuntimeContext()["threadInstance"].(*client.Client)
			if !ok {
				s.Fatal("threadInstance is missing")
			}
			if doc, err := client.Read(s.Context(), c, events.GetThread{ThreadID: st.ThreadID()}); err != nil || doc.ID != st.ThreadID() {
				s.Errorf("%+v, %v", doc, err)
			}
		}},
		{"SA-154", func(s *suite) { s.noEnv() }}, // bindings belong to an execution, and none is active
		{"SA-155", func(s *suite) { s.noEnv() }}, // when idle: threadInstance, and no env
	}
}

func (s *suite) noEnv() {
	s.Helper()
	values := s.thread().RuntimeContext()
	if env, ok := values["env"]; ok || values["threadInstance"] == nil {
		s.Errorf("env is %v, threadInstance %v", env, values["threadInstance"])
	}
}

// emits shows that every subscriber receives what is emitted, in order, and that it is
// not state (C-23).
func emits(s *suite) {
	st, other := s.thread(), s.thread()
	second := connect(s, s.url)
	version := func() uint64 {
		s.Helper()
		nc := natstest.Dial(s, s.url)
		js, err := jetstream.New(nc)
		if err != nil {
			s.Fatal(err)
		}
		stored := uint64(0)
		for name := range js.StreamNames(s.Context()).Name() {
			stream, err := js.Stream(s.Context(), name)
			if err != nil {
				s.Fatal(err)
			}
			for subject := range stream.CachedInfo().Config.Subjects {
				if strings.Contains(stream.CachedInfo().Config.Subjects[subject], ".live.") {
					s.Errorf("%s keeps live events", name)
				}
			}
			if name == "SKEIN_LOG" {
				stored = stream.CachedInfo().State.LastSeq
			}
		}
		return stored
	}
	before := version()
	mine, theirs, all := s.listen(s.c, st.ThreadID()), s.listen(second, st.ThreadID()), s.listen(second, "")
	s.emit(other, "elsewhere", 1)
	const many = 1000
	for i := range many {
		s.emit(st, "progress", map[string]int{"step": i})
	}
	s.same("the first of all threads'", s.next(all).Event, "elsewhere")
	for _, live := range []*client.Live{mine, theirs, all} {
		for i := range many {
			e := s.next(live)
			if e.Event != "progress" || e.ThreadID != st.ThreadID() || e.N != int64(i+1) || string(e.Data) != fmt.Sprintf(`{"step":%d}`, i) {
				s.Fatalf("event %d is %+v", i, e)
			}
		}
	}
	s.same("the end of the log", version(), before)
	if _, err := s.c.LiveEvents(s.Context(), "a.>"); err == nil {
		s.Error("a thread that is a pattern is followed")
	}
	late := s.listen(s.c, st.ThreadID())
	s.emit(st, "after", nil)
	s.same("what a late listener sees first", s.next(late).Event, "after")
}

func TestLive_Ends(t *testing.T) {
	t.Parallel()
	url := start(t)
	s := &suite{T: t, url: url, c: connect(t, url)}
	live := s.listen(s.c, s.thread().ThreadID())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := live.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for range live.All(ctx) {
		t.Error("an event came")
	}
	live.Close()
	if _, err := live.Next(t.Context()); !errors.Is(err, client.ErrClosed) {
		t.Errorf("%v", err)
	}
}
