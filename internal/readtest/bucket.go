package readtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// BringBack puts documents into their buckets as they were, as a server does that was
// killed after it purged them.
func (h *House) BringBack(docs map[documents.Kind]map[string]string) {
	h.Helper()
	for kind, list := range docs {
		bucket := h.Models.Of(kind).Bucket
		for key, doc := range list {
			if _, err := h.EventLog.JetStream().PublishMsg(h.Context(), &nats.Msg{Subject: "$KV." + bucket + "." + key, Data: []byte(doc)}); err != nil {
				h.Fatal(err)
			}
		}
	}
}

// Tamper puts something into a bucket as no runner does, or removes a document if value
// is empty.
func (h *House) Tamper(p documents.Projection, key, value string) {
	h.Helper()
	stream, err := h.EventLog.JetStream().Stream(h.Context(), "KV_"+p.Bucket)
	if err != nil {
		h.Fatal(err)
	}
	subject := "$KV." + p.Bucket + "." + key
	if value == "" {
		m, err := stream.GetLastMsgForSubject(h.Context(), subject)
		if err != nil {
			h.Fatal(err)
		}
		// As key-value clients remove: a marker.
		if _, err := h.EventLog.JetStream().PublishMsg(h.Context(), &nats.Msg{Subject: subject, Header: buckets.Marker(m.Sequence)}); err != nil {
			h.Fatal(err)
		}
		return
	}
	if _, err := h.EventLog.JetStream().Publish(h.Context(), subject, []byte(value)); err != nil {
		h.Fatal(err)
	}
}

// NeverOlder reads documents of a thread until ctx ends: none may go back to an older
// sequence.
func (h *House) NeverOlder(ctx context.Context, thread string) {
	last := map[string]int64{}
	for ctx.Err() == nil {
		for _, p := range h.Models.List() {
			pattern := Acme + "." + thread
			if p.Kind != documents.Threads {
				pattern += ".>"
			}
			got, err := h.EventLog.Bucket(p.Bucket).Get(h.Context(), pattern)
			if err != nil {
				continue // too many by now
			}
			for _, m := range got {
				var doc events.Stamp
				if err := json.Unmarshal(m.Data, &doc); err != nil {
					h.Errorf("%s: %v", m.Subject, err)
				}
				if doc.Seq < last[p.Bucket+m.Subject] {
					h.Errorf("%s went back from %d to %d", m.Subject, last[p.Bucket+m.Subject], doc.Seq)
				}
				last[p.Bucket+m.Subject] = doc.Seq
			}
		}
	}
}

// Publish puts a message into a stream as it is.
func (h *House) Publish(subject string, header nats.Header, data []byte) {
	h.Helper()
	if _, err := h.EventLog.JetStream().PublishMsg(h.Context(), &nats.Msg{Subject: subject, Header: header, Data: data}); err != nil {
		h.Fatal(err)
	}
}

// WriteChunk writes a chunk of a run on a thread.
func (h *House) WriteChunk(thread string) {
	h.Helper()
	w, err := chunks.NewWriter(h.EventLog, chunks.Run{Tenant: Acme, Thread: thread, Execution: "exe_1", Token: 1, Version: 1})
	if err != nil {
		h.Fatal(err)
	}
	if err := w.Finish(h.Context(), events.Finish{Reason: events.FinishStop}); err != nil {
		h.Fatal(err)
	}
}

// CountMessages counts the messages of a subject.
func (h *House) CountMessages(subject string) (n uint64) {
	h.Helper()
	name, err := h.EventLog.JetStream().StreamNameBySubject(h.Context(), subject)
	if err != nil {
		h.Fatal(err)
	}
	stream, err := h.EventLog.JetStream().Stream(h.Context(), name)
	if err != nil {
		h.Fatal(err)
	}
	info, err := stream.Info(h.Context(), jetstream.WithSubjectFilter(subject))
	if err != nil {
		h.Fatal(err)
	}
	for _, count := range info.State.Subjects {
		n += count
	}
	return n
}

// Submitting does submitted commands until the test ends.
func (h *House) Submitting() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Dispatcher.Submitted(ctx)
	}()
	h.Cleanup(func() {
		cancel()
		<-done
	})
}

// Tombstone returns a thread's tombstone, nil if it is not deleted.
func (h *House) Tombstone(id string) *events.Commit {
	h.Helper()
	last, err := h.EventLog.Last(h.Context(), Acme, id)
	if err != nil {
		h.Fatal(err)
	}
	if last == nil {
		h.Fatalf("%s is not in the log", id)
	}
	if _, ok := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted); ok {
		return last
	}
	return nil
}

// CreateWorker creates a thread that works for another.
func (h *House) CreateWorker(main string) string {
	h.Helper()
	return h.Do("thread.create", "", fmt.Sprintf(`{"mainThreadId":%q}`, main)).ThreadID
}

// LargeItem creates a thread on which a run writes an item whose document exceeds what
// a message takes: 20 parts of 250 KB.
func (h *House) LargeItem() (id, item string, version int64) {
	h.Helper()
	id = h.Do("thread.create", "", `{}`).ThreadID
	made := h.Do("thread.react", id, `{"text":"look","agentId":"helper"}`).Result
	h.DoBoundary(id, thread.ClaimRun{ExecutionID: made.ExecutionID, Worker: "w"})
	for i := range 20 {
		var run thread.Run
		if err := h.Dispatcher.Look(h.Context(), Acme, id, func(s *thread.State) { run, _ = s.Run(made.ExecutionID) }); err != nil {
			h.Fatal(err)
		}
		version = h.DoBoundary(id, thread.ReactStep{
			ExecutionID: made.ExecutionID, Token: run.Token, StepID: run.StepID, Types: []string{"acme.seen"}, After: thread.After{Continue: true},
			Parts: []events.JSON{events.JSON(fmt.Sprintf(`{"type":"acme.seen","value":"%d%s"}`, i, strings.Repeat("o", 250<<10)))},
		})
	}
	return id, made.ReactionItemID, version
}

// DoBoundary does a boundary of a run, as a worker does.
func (h *House) DoBoundary(id string, data any) int64 {
	h.Helper()
	commit, err := h.Dispatcher.Run(h.Context(), &thread.Command{ID: rand.Text(), Tenant: Acme, ThreadID: id, Parts: []thread.Part{{Name: "run.boundary", Data: data}}}, nil)
	if err != nil {
		h.Fatal(err)
	}
	return commit.Version
}

// Apply changes definitions.
func (h *House) Apply(data string) *events.Reply {
	h.Helper()
	return h.Do("definition.apply", "", data)
}

// FullThread creates a thread that has a document in every bucket, and returns them,
// except its own, when the runner has stored them.
func (h *House) FullThread(p *buckets.Progress) (id string, docs map[documents.Kind]map[string]string) {
	h.Helper()
	id = h.Do("thread.create", "", `{}`).ThreadID
	h.React(id, 1)
	h.Do("effect.schedule", id, `{"name":"later","delayMs":3600000}`)
	h.Do("file.write", id, `{"path":"/d/a.txt","external":"https://example.com/a.txt"}`)
	for _, d := range []events.TraceRecorded{
		{Kind: "log", ExecutionID: "exe_t", Text: "line", Data: []byte(`{"level":"info"}`)},
		{Kind: "span", ExecutionID: "exe_t", SpanID: "sp", Data: []byte(`{"name":"x"}`)},
	} {
		h.Append(id, events.Event{Type: events.TraceRecordedType, Correlation: "exe_t", Data: d})
	}
	h.Await(p)
	for _, model := range h.Models.List() {
		if model.Kind != documents.Definitions && len(h.Live(model)) == 0 {
			h.createDocument(id, model)
		}
	}
	h.Await(p)
	docs = map[documents.Kind]map[string]string{}
	for _, model := range h.Models.List() {
		if model.Kind == documents.Threads || model.Kind == documents.Definitions {
			continue
		}
		if docs[model.Kind] = h.Live(model); len(docs[model.Kind]) == 0 {
			h.Fatalf("the thread has no document in the bucket of %s", model.Name)
		}
	}
	return id, docs
}

// createDocument appends the first event of the catalog whose example alone creates a
// document of the read model.
func (h *House) createDocument(thread string, model documents.Projection) {
	h.Helper()
	for _, row := range events.Catalog() {
		if row.Transient || row.Entity() == "lifecycle" {
			continue
		}
		e := row.ExampleEvent()
		e.Tenant, e.ThreadID = Acme, thread
		m := h.Models.NewMemory(nil)
		_ = m.Apply(&events.Commit{Tenant: Acme, Thread: thread, Seq: 1, Version: 1, Events: []events.Event{e}})
		if len(m.All(documents.Mask(0).With(model.Kind))) > 0 {
			h.Append(thread, e)
			return
		}
	}
}
