package client_test

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// run is an execution on a thread, with what a worker needs to stream its chunks.
type run struct {
	t                 testing.TB
	c                 *client.Client
	log               *eventlog.Log
	thread, execution string
}

func logAt(t testing.TB, url string) *eventlog.Log {
	t.Helper()
	nc := natstest.Dial(t, url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	log, err := eventlog.Open(nc, eventlog.Config{Patience: 5 * time.Minute}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

// newRun creates a thread with an execution.
func newRun(t testing.TB, url string) *run {
	t.Helper()
	r := &run{t: t, c: connect(t, url), log: logAt(t, url)}
	r.thread = newThread(t, r.c)
	r.execution = r.begin()
	return r
}

// begin creates an execution on the thread.
func (r *run) begin() string {
	r.t.Helper()
	item, err := r.c.Send(r.t.Context(), r.thread, message("do it"))
	if err != nil {
		r.t.Fatal(err)
	}
	made, err := r.c.Send(r.t.Context(), r.thread, events.CreateExecution{TriggerItemID: item.Result.ItemID})
	if err != nil {
		r.t.Fatal(err)
	}
	return made.Result.ExecutionID
}

// end ends the execution, as a worker's last commit does.
func (r *run) end(to events.ExecutionStatus, why string) {
	r.t.Helper()
	if _, err := r.c.Send(r.t.Context(), r.thread, events.SetExecutionStatus{ExecutionID: r.execution, To: to, ErrorText: why}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) writer(token int64) *chunks.Writer {
	r.t.Helper()
	w, err := chunks.NewWriter(r.log, chunks.Run{Tenant: "acme", Thread: r.thread, Execution: r.execution, Token: token, Version: 3, Since: time.Now()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.Close(ctx)
	})
	return w
}

// say emits each text as a chunk.
func (r *run) say(w *chunks.Writer, from, to int) {
	r.t.Helper()
	for i := from; i < to; i++ {
		data, err := events.DeltaData(events.ChunkTextDelta, events.Delta{Key: fmt.Sprint("t", i), Text: fmt.Sprint(i)})
		if err != nil {
			r.t.Fatal(err)
		}
		if err := w.Emit(r.t.Context(), "stp_1", events.ChunkTextDelta, data); err != nil {
			r.t.Error(err)
			return
		}
	}
}

func (r *run) finish(w *chunks.Writer) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	if err := w.Finish(ctx, events.Finish{Reason: events.FinishStop}); err != nil {
		r.t.Error(err)
	}
}

// stored waits until the stream holds n chunks of the run.
func (r *run) stored(n uint64) {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		stream, err := r.log.JetStream().Stream(r.t.Context(), "SKEIN_CHUNKS")
		if err == nil {
			subject := r.log.Config().Names.Chunk("acme", r.thread, r.execution)
			info, err := stream.Info(r.t.Context(), jetstream.WithSubjectFilter(subject))
			if err == nil && info.State.Subjects[subject] >= n {
				return
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d chunks are not stored", n)
		}
	}
}

// seen is what a reader received.
type seen struct {
	chunks []client.Chunk
	gaps   []client.ChunkGapError
	err    error
}

// read reads to the end, and calls each after every chunk.
func read(ctx context.Context, c *client.Client, thread, execution string, each func(client.Chunk), opts ...client.ChunkOption) seen {
	var s seen
	for chunk, err := range c.Chunks(ctx, thread, execution, opts...) {
		var gap *client.ChunkGapError
		switch {
		case errors.As(err, &gap):
			s.gaps = append(s.gaps, *gap)
			continue
		case err != nil:
			s.err = err
			continue
		}
		s.chunks = append(s.chunks, chunk)
		if each != nil {
			each(chunk)
		}
	}
	return s
}

// exact fails the test unless the chunks are those from first to the end, each once,
// with n texts that begin with text, followed by a finish.
func (s seen) exact(t testing.TB, first int64, text, n int) {
	t.Helper()
	if s.err != nil || len(s.gaps) > 0 || len(s.chunks) != n+1 {
		t.Fatalf("%d chunks, not %d; gaps %v; %v", len(s.chunks), n+1, s.gaps, s.err)
	}
	for i, c := range s.chunks {
		if c.Index != first+int64(i) {
			t.Fatalf("chunk %d is at %d", c.Index, first+int64(i))
		}
		if d, err := events.CheckChunk(c.Type, c.Data); i < n && (err != nil || d == nil || d.Text != fmt.Sprint(text+i)) {
			t.Fatalf("chunk %d is %s %s", c.Index, c.Type, c.Data)
		}
	}
	if last := s.chunks[n]; last.Type != events.ChunkFinish {
		t.Fatalf("the last is %s", last.Type)
	}
}

// waits returns a context with a generous deadline.
func waits(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// EK-125, C-23: readers who subscribe before, during and after a run, and one who
// resumes by index, see each chunk once and in order, and the end of the run.
func TestChunks_EarlyLateAndResumedReaders(t *testing.T) {
	t.Parallel()
	r := newRun(t, start(t))
	ctx := waits(t)
	var readers sync.WaitGroup
	go1 := func(first int64) {
		readers.Go(func() {
			read(ctx, r.c, r.thread, r.execution, nil, client.FromChunk(first)).exact(t, first, int(first), 400-int(first))
		})
	}
	go1(0)
	w := r.writer(1)
	r.say(w, 0, 100)
	r.stored(100)
	go1(0)
	go1(70)
	go1(250) // it does not exist yet
	r.say(w, 100, 400)
	go1(100)
	r.stored(400)
	go1(399)
	r.end(events.ExecutionCompleted, "")
	r.finish(w)
	readers.Wait()
	for _, first := range []int64{0, 1, 399, 400} {
		read(ctx, r.c, r.thread, r.execution, nil, client.FromChunk(first)).exact(t, first, int(first), 400-int(first))
	}
	// A reader that starts after the end receives the end.
	if s := read(ctx, r.c, r.thread, r.execution, nil, client.FromChunk(1000)); s.err != nil || len(s.chunks) != 1 || s.chunks[0].Type != events.ChunkFinish || s.chunks[0].Derived {
		t.Errorf("%+v", s)
	}
}

// A reader that disconnects and resumes with the next index, repeatedly, misses no
// chunk and sees none twice.
func TestChunks_ResumeByIndex(t *testing.T) {
	t.Parallel()
	r := newRun(t, start(t))
	ctx := waits(t)
	w := r.writer(1)
	var writing sync.WaitGroup
	writing.Go(func() {
		r.say(w, 0, 1000)
		r.finish(w)
	})
	defer writing.Wait() // the reader may have the last chunk before the writer's acknowledgement
	var all seen
	next := int64(0)
	for done := false; !done; {
		n := 0
		for c, err := range r.c.Chunks(ctx, r.thread, r.execution, client.FromChunk(next)) {
			if err != nil {
				t.Fatal(err)
			}
			all.chunks = append(all.chunks, c)
			next, done = c.Index+1, c.Type == events.ChunkFinish
			if n++; n == 37 {
				break
			}
		}
	}
	all.exact(t, 0, 0, 1000)
}

// A slow reader delays neither the worker nor another reader; it receives all chunks
// once it continues.
func TestChunks_SlowReaderDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRun(t, start(t))
	ctx := waits(t)
	const n = 4000 // more than the channel buffers
	begun, go2 := make(chan struct{}), make(chan struct{})
	slow := make(chan seen, 1)
	go func() {
		slow <- read(ctx, r.c, r.thread, r.execution, func(c client.Chunk) {
			if c.Index == 0 {
				close(begun)
				<-go2
			}
		})
	}()
	fast := make(chan seen, 1)
	go func() { fast <- read(ctx, r.c, r.thread, r.execution, nil) }()
	w := r.writer(1)
	r.say(w, 0, 1)
	<-begun
	r.say(w, 1, n)
	r.finish(w)
	(<-fast).exact(t, 0, 0, n)
	close(go2)
	(<-slow).exact(t, 0, 0, n)
}

// Many readers of one run each see every chunk.
func TestChunks_ManyReaders(t *testing.T) {
	t.Parallel()
	url := start(t)
	r := newRun(t, url)
	ctx := waits(t)
	var readers sync.WaitGroup
	for range 4 {
		c := connect(t, url)
		for range 25 {
			readers.Go(func() { read(ctx, c, r.thread, r.execution, nil).exact(t, 0, 0, 300) })
		}
	}
	w := r.writer(1)
	r.say(w, 0, 300)
	r.finish(w)
	readers.Wait()
}

// A restart of the server loses no chunk for the worker or the reader.
func TestChunks_SurviveServerRestart(t *testing.T) {
	t.Parallel()
	address := natstest.FreeAddress(t)
	cfg := server.Config{Store: t.TempDir(), NATSListen: address, HTTPListen: "127.0.0.1:0", Volatile: true}
	serving := func() (stop func()) {
		s, err := server.Start(t.Context(), cfg, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		return sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			if err := s.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop := serving()
	r := newRun(t, "nats://"+address)
	ctx := waits(t)
	at := make(chan int64, 2000)
	got := make(chan seen, 1)
	go func() {
		got <- read(ctx, r.c, r.thread, r.execution, func(c client.Chunk) { at <- c.Index })
	}()
	w := r.writer(1)
	r.say(w, 0, 100)
	for i := range at {
		if i == 99 {
			break
		}
	}
	stop()
	r.say(w, 100, 300) // published after the restart
	stop = serving()
	defer stop()
	r.say(w, 300, 600)
	r.stored(600)
	r.end(events.ExecutionCompleted, "")
	r.finish(w)
	(<-got).exact(t, 0, 0, 600)
}

// A run whose worker died before it wrote the end has an end, for a reader that was
// connected and for one that connects later (EK-131).
func TestChunks_EndIfWorkerDied(t *testing.T) {
	t.Parallel()
	url := start(t)
	for status, want := range map[events.ExecutionStatus]string{
		events.ExecutionCompleted: `{"finishReason":"stop"}`, events.ExecutionFailed: `{"errorText":"the model is away","finishReason":"error"}`,
	} {
		r := newRun(t, url)
		ctx := waits(t)
		there := make(chan struct{})
		got := make(chan seen, 1)
		go func() {
			got <- read(ctx, r.c, r.thread, r.execution, func(c client.Chunk) {
				if c.Index == 4 {
					close(there)
				}
			}, client.OfRunning())
		}()
		w := r.writer(1)
		r.say(w, 0, 5)
		<-there
		why := ""
		if status == events.ExecutionFailed {
			why = "the model is away"
		}
		r.end(status, why)
		for _, s := range []seen{<-got, read(ctx, r.c, r.thread, r.execution, nil)} {
			s.exact(t, 0, 0, 5)
			if last := s.chunks[5]; !last.Derived || canonical(t, last.Data) != want {
				t.Errorf("the end of a run that %s: %+v", status, last)
			}
		}
		if s := read(ctx, r.c, r.thread, r.execution, nil, client.FromChunk(5)); len(s.chunks) != 1 || !s.chunks[0].Derived {
			t.Errorf("from the end: %+v", s)
		}
	}
}

func canonical(t testing.TB, data events.JSON) string {
	t.Helper()
	if err := (*jsontext.Value)(&data).Canonicalize(); err != nil {
		t.Error(err)
	}
	return string(data)
}

// Expired chunks are reported as a gap, and a run whose chunks have all expired has its
// end.
func TestChunks_ReportExpired(t *testing.T) {
	t.Parallel()
	r := newRun(t, start(t))
	ctx := waits(t)
	w := r.writer(1)
	r.say(w, 0, 50)
	r.stored(50)
	stream, err := r.log.JetStream().Stream(ctx, "SKEIN_CHUNKS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	expire := func() { // as the retention of an hour does
		short := cfg
		short.MaxAge, short.Duplicates = 100*time.Millisecond, 100*time.Millisecond
		if _, err := r.log.JetStream().UpdateStream(ctx, short); err != nil {
			t.Fatal(err)
		}
		for {
			info, err := stream.Info(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if info.State.Msgs == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if _, err := r.log.JetStream().UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	expire()
	r.say(w, 50, 60)
	r.stored(10)
	r.end(events.ExecutionCompleted, "")
	r.finish(w)
	s := read(ctx, r.c, r.thread, r.execution, nil)
	if len(s.gaps) != 1 || s.gaps[0].From != 0 || s.gaps[0].To != 49 || !strings.Contains(s.gaps[0].Error(), "0 to 49") {
		t.Errorf("gaps %+v", s.gaps)
	}
	s.gaps = nil
	s.exact(t, 50, 50, 10)
	read(ctx, r.c, r.thread, r.execution, nil, client.FromChunk(55)).exact(t, 55, 55, 5)
	expire()
	s = read(ctx, r.c, r.thread, r.execution, nil, client.FromChunk(55))
	if s.err != nil || len(s.chunks) != 1 || !s.chunks[0].Derived || s.chunks[0].Index != 55 || string(s.chunks[0].Data) != `{"finishReason":"stop"}` {
		t.Errorf("all has expired: %+v", s)
	}
}

// A newer claim takes over while the older one still writes: a reader sees the indexes
// without gap or duplicate, and no chunk of the older claim after one of the newer,
// whatever is published on the subject.
func TestChunks_TakeoverByNewerClaim(t *testing.T) {
	t.Parallel()
	url := start(t)
	r := newRun(t, url)
	ctx := waits(t)
	got := make(chan seen, 1)
	there := make(chan struct{})
	go func() {
		got <- read(ctx, r.c, r.thread, r.execution, func(c client.Chunk) {
			if c.Index == 20 {
				close(there)
			}
		})
	}()
	old := r.writer(1)
	halted := make(chan struct{})
	go func() {
		defer close(halted)
		for old.Emit(ctx, "", events.ChunkThreadPing, events.JSON(`{"at":"now"}`)) == nil {
		}
	}()
	<-there
	other := &run{t: t, c: r.c, log: logAt(t, url), thread: r.thread, execution: r.execution}
	w := other.writer(2)
	other.say(w, 0, 50)
	<-halted
	// Later chunks of an older claim, and duplicates, do not count.
	stale := events.Event{
		ID: "x", Type: events.ChunkEmittedType, Time: 1, Subject: r.execution, Tenant: "acme", ThreadID: r.thread, Version: 1,
		Data: events.ChunkEmitted{ExecutionID: r.execution, Index: 1 << 40, Attempt: 1, Type: "data-stale"},
	}
	body, err := stale.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	names := events.DefaultNames()
	for range 3 {
		if err := r.log.Conn().Publish(names.Timeline("acme", r.thread, events.ChunkEmittedType), body); err != nil {
			t.Fatal(err)
		}
		if _, err := r.log.Conn().Request(names.Chunk("acme", r.thread, r.execution), body, time.Minute); err == nil {
			break // one is stored, before the newer claim's next chunk
		}
	}
	other.finish(w)
	s := <-got
	last := int64(0)
	for i, c := range s.chunks {
		if c.Index != int64(i) || c.Attempt < last || c.Type == "data-stale" {
			t.Fatalf("chunk %d of claim %d, %s, is at %d after claim %d", c.Index, c.Attempt, c.Type, i, last)
		}
		last = c.Attempt
	}
	if s.err != nil || len(s.gaps) > 0 || last != 2 || s.chunks[len(s.chunks)-1].Type != events.ChunkFinish {
		t.Errorf("%v, gaps %v, %d chunks", s.err, s.gaps, len(s.chunks))
	}
}

// A reader without an execution id receives the active run, or else the next.
func TestChunks_OfActiveRun(t *testing.T) {
	t.Parallel()
	r := newRun(t, start(t))
	ctx := waits(t)
	w := r.writer(1)
	r.say(w, 0, 20)
	r.stored(20)
	there := make(chan struct{})
	got := make(chan seen, 1)
	go func() {
		got <- read(ctx, r.c, r.thread, "", func(c client.Chunk) {
			if c.Index == 19 {
				close(there)
			}
		})
	}()
	<-there
	r.say(w, 20, 40)
	r.stored(40)
	r.end(events.ExecutionCompleted, "")
	r.finish(w)
	(<-got).exact(t, 0, 0, 40)

	// No run is active. The next may begin before the reader has subscribed.
	there = make(chan struct{})
	go func() {
		got <- read(ctx, r.c, r.thread, "", func(c client.Chunk) {
			if c.Index == 0 {
				close(there)
			}
		})
	}()
	r.execution = r.begin()
	w = r.writer(1)
	r.say(w, 0, 30)
	r.stored(30)
	<-there
	r.end(events.ExecutionCompleted, "")
	r.finish(w)
	s := <-got
	s.exact(t, 0, 0, 30)
	if s.chunks[0].ExecutionID != r.execution {
		t.Errorf("it read %s", s.chunks[0].ExecutionID)
	}
}

// A timeline shows chunks only on request, and events of the log as before (EK-147,
// C-43).
func TestTimeline_ChunksOnRequest(t *testing.T) {
	t.Parallel()
	r := newRun(t, start(t))
	line := func(o client.SubscribeOptions) *client.Timeline {
		o.Thread, o.From = r.thread, client.Now()
		l, err := r.c.Timeline(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	with, without, other := line(client.SubscribeOptions{Chunks: true}), line(client.SubscribeOptions{}), line(client.SubscribeOptions{Chunks: true, Types: []string{"execution.*"}})
	w := r.writer(1)
	r.say(w, 0, 1)
	r.stored(1)
	if e := next(t, with); e.Type != events.ChunkEmittedType || e.Seq != 0 {
		t.Errorf("%+v", e)
	}
	r.end(events.ExecutionCompleted, "")
	for _, l := range []*client.Timeline{with, without, other} {
		if e := next(t, l); e.Type != events.ExecutionStatusChangedType || e.Seq == 0 {
			t.Errorf("%+v", e)
		}
	}
}

func TestChunks_RefuseInvalidArguments(t *testing.T) {
	t.Parallel()
	r := newRun(t, start(t))
	ctx := waits(t)
	for name, bad := range map[string]struct {
		thread, execution string
		from              int64
		code              events.Code
	}{
		"thread":       {"T-1", "exe_1", 0, events.InvalidRequest},
		"key":          {"key:a", "", 0, events.InvalidRequest},
		"execution":    {r.thread, "exe.>", 0, events.InvalidRequest},
		"number":       {r.thread, r.execution, -1, events.InvalidRequest},
		"none such":    {r.thread, "exe_nowhere", 0, events.NotFound},
		"no thread":    {"T-01900000-0000-7000-8000-000000000000", "exe_1", 0, events.NotFound},
		"other thread": {newThread(t, r.c), r.execution, 0, events.NotFound},
	} {
		if s := read(ctx, r.c, bad.thread, bad.execution, nil, client.FromChunk(bad.from)); len(s.chunks) > 0 || !errors.Is(s.err, &events.Error{Code: bad.code}) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := r.writer(1)
	r.say(w, 0, 1)
	reason := errors.New("enough")
	s := read(ctx, r.c, r.thread, r.execution, func(client.Chunk) { cancel(reason) })
	if len(s.chunks) != 1 || !errors.Is(s.err, reason) {
		t.Errorf("called off: %+v", s)
	}
}
