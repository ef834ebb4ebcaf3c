package chunks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// chunkRun is a run on a thread of its own.
func chunkRun(n int, token int64) chunks.Run {
	return chunks.Run{Tenant: logtest.Tenant, Thread: logtest.NewAuthor(n).Thread, Execution: fmt.Sprint("exe_", n), Token: token, Version: 7, Since: time.Now()}
}

func chunksOf(t testing.TB, l *eventlog.Log, r chunks.Run) *chunks.Writer {
	t.Helper()
	w, err := chunks.NewWriter(l, r)
	logtest.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.Close(ctx)
	})
	return w
}

func delta(id, text string) events.JSON {
	data, _ := events.DeltaData(events.ChunkTextDelta, events.Delta{Key: id, Text: text})
	return data
}

func emit(t testing.TB, w *chunks.Writer, id, text string) {
	t.Helper()
	logtest.Must(t, w.Emit(t.Context(), "stp_1", events.ChunkTextDelta, delta(id, text)))
}

// storedChunks reads the chunks of a run, and fails the test unless their numbers
// increase by one from first, and claims never decrease.
func storedChunks(t testing.TB, l *eventlog.Log, r chunks.Run, first int64) []events.ChunkEmitted {
	t.Helper()
	var all []events.ChunkEmitted
	for m, err := range l.Streams().Messages(t.Context(), l.Config().Names.Stream(assets.ChunkStream), l.Config().Names.Chunk(r.Tenant, r.Thread, r.Execution), 1) {
		logtest.Must(t, err)
		c, err := chunks.Decode(m.Data)
		logtest.Must(t, err)
		if c.Index != first+int64(len(all)) || c.ExecutionID != r.Execution {
			t.Fatalf("chunk %d of %s comes after %d", c.Index, c.ExecutionID, len(all))
		}
		if len(all) > 0 && c.Attempt < all[len(all)-1].Attempt {
			t.Fatalf("chunk %d of claim %d comes after one of claim %d", c.Index, c.Attempt, all[len(all)-1].Attempt)
		}
		all = append(all, c)
	}
	return all
}

// texts joins the texts of deltas.
func texts(t testing.TB, list []events.ChunkEmitted) string {
	t.Helper()
	var out strings.Builder
	for _, c := range list {
		if d, err := events.CheckChunk(c.Type, c.Data); err == nil && d != nil {
			out.WriteString(d.Text)
		}
	}
	return out.String()
}

// EK-125, EK-147, C-43: chunks are stored in order and numbered, published on the
// timeline's subject as chunk.emitted, and neither on the timeline's stream nor in the
// log.
func TestChunksAreNumberedAndRepublished(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	r := chunkRun(1, 1)
	sub, err := l.Conn().SubscribeSync(l.Config().Names.Timeline(logtest.Tenant, r.Thread, "chunk.emitted"))
	logtest.Must(t, err)
	w := chunksOf(t, l, r)
	logtest.Must(t, w.Emit(t.Context(), "", events.ChunkContextID, events.JSON(`{"contextId":"ctx_1"}`)))
	for i := range 10 {
		emit(t, w, fmt.Sprint("t", i), fmt.Sprint(i)) // each a text of its own: none is merged
	}
	logtest.Must(t, w.Finish(t.Context(), events.Finish{Reason: events.FinishStop}))
	got := storedChunks(t, l, r, 0)
	if len(got) != 12 || texts(t, got) != "0123456789" || got[0].Type != events.ChunkContextID || got[11].Type != events.ChunkFinish || string(got[11].Data) != `{"finishReason":"stop"}` {
		t.Errorf("%+v", got)
	}
	for i := range got {
		m, err := sub.NextMsg(natstest.Patience)
		logtest.Must(t, err)
		e, err := events.DecodeEvent(m.Data)
		logtest.Must(t, err)
		if c := e.Data.(events.ChunkEmitted); c.Index != int64(i) || c.Attempt != 1 || e.Version != 7 || e.Subject != r.Execution || m.Header.Get(events.HeaderType) != events.EventContentType {
			t.Errorf("on the timeline: %+v", e)
		}
	}
	stored, err := l.JetStream().Stream(t.Context(), l.Config().Names.Stream(assets.TimelineStream))
	logtest.Must(t, err)
	if n := stored.CachedInfo().State.Msgs; n != 0 {
		t.Errorf("the timeline's stream holds %d chunks", n)
	}
	if err := w.Emit(t.Context(), "", events.ChunkTextDelta, delta("t", "late")); !errors.Is(err, chunks.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
}

// Under more load than the server can store, deltas are merged: the text is whole and in
// order, and the numbers have no gap.
func TestChunksUnderLoad(t *testing.T) {
	// Not parallel to the tests of leases, which depend on the clock.
	l := logtest.Start(t)
	const runs, each = 4, 4000
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			w := chunksOf(t, l, chunkRun(i, 1))
			for n := range each {
				if err := w.Emit(t.Context(), "stp_1", events.ChunkTextDelta, delta("t", fmt.Sprint(n, " "))); err != nil {
					t.Error(err)
					return
				}
				if n%1000 == 999 { // what is no delta stays what it is
					if err := w.Emit(t.Context(), "stp_1", events.ChunkToolError, events.JSON(`{"toolCallId":"c","errorText":"x"}`)); err != nil {
						t.Error(err)
						return
					}
				}
			}
			if err := w.Finish(t.Context(), events.Finish{Reason: events.FinishStop}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var want strings.Builder
	for n := range each {
		fmt.Fprint(&want, n, " ")
	}
	for i := range runs {
		got := storedChunks(t, l, chunkRun(i, 1), 0)
		tools := 0
		for _, c := range got {
			if c.Type == events.ChunkToolError {
				tools++
			}
		}
		if texts(t, got) != want.String() || tools != each/1000 || got[len(got)-1].Type != events.ChunkFinish {
			t.Errorf("run %d: %d chunks, %d of them of tools", i, len(got), tools)
		}
		if len(got) >= each {
			t.Errorf("run %d: nothing was merged", i)
		}
	}
}

// Two claims write at once: each number is stored once, and the older claim's chunks end
// where the newer one's begin.
func TestTakeoverOfChunks(t *testing.T) {
	// Not parallel to the tests of leases, which depend on the clock.
	l := logtest.Start(t)
	other := logtest.Sibling(t, l)
	for round := range 10 {
		old := chunksOf(t, l, chunkRun(round, 1))
		emit(t, old, "t", "begin")
		halted := make(chan error, 1)
		go func() {
			for {
				if err := old.Emit(t.Context(), "stp_1", events.ChunkThreadPing, events.JSON(`{"at":"now"}`)); err != nil {
					halted <- err
					return
				}
			}
		}()
		natstest.Eventually(t, "the old claim to write", func() bool { return len(storedChunks(t, l, chunkRun(round, 1), 0)) > 10 })
		w := chunksOf(t, other, chunkRun(round, 2))
		for i := range 20 {
			emit(t, w, fmt.Sprint("t", i), fmt.Sprint(i))
		}
		if err := natstest.Within(t, "the old claim to be halted", halted); !streams.IsFenced(err) {
			t.Fatalf("the old claim: %v", err)
		}
		if err := old.Close(t.Context()); !streams.IsFenced(err) {
			t.Errorf("the old claim ends with %v", err)
		}
		logtest.Must(t, w.Finish(t.Context(), events.Finish{Reason: events.FinishStop}))
		got := storedChunks(t, l, chunkRun(round, 2), 0)
		end := got[len(got)-1]
		if own := got[len(got)-21:]; own[0].Attempt != 2 || got[len(got)-22].Attempt != 1 || texts(t, own) != "012345678910111213141516171819" || end.Type != events.ChunkFinish {
			t.Errorf("round %d: %+v", round, own)
		}
	}
}

// A connection that is cut at any moment loses no chunk and repeats none.
func TestChunksOverACutConnection(t *testing.T) {
	t.Parallel()
	direct := logtest.Start(t)
	p := natstest.NewProxy(t, direct.Conn().ConnectedUrl())
	nc := p.Connect(t)
	l := logtest.Open(t, nc, eventlog.Config{})
	w := chunksOf(t, l, chunkRun(1, 1))
	var want strings.Builder
	for n := range 600 {
		switch n % 60 {
		case 20:
			p.Cut()
		case 40: // requests and replies are lost first
			p.DropReceived.Store(n%120 == 40)
			p.DropSent.Store(n%120 == 100)
		case 45:
			p.Cut()
		}
		emit(t, w, fmt.Sprint("t", n), fmt.Sprint(n, " ")) // none is merged
		fmt.Fprint(&want, n, " ")
		if n%3 == 0 {
			time.Sleep(time.Millisecond) // so that cuts hit all stages of writing
		}
	}
	p.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	logtest.Must(t, w.Finish(ctx, events.Finish{Reason: events.FinishStop}))
	got := storedChunks(t, direct, chunkRun(1, 1), 0)
	if texts(t, got) != want.String() || len(got) != 601 {
		t.Errorf("%d chunks", len(got))
	}
}

// A claim that begins after all chunks have expired uses unused numbers; a run that is
// too young for that begins at 0, and a writer that was silent for too long continues its
// numbers.
func TestChunksAfterExpiry(t *testing.T) {
	t.Parallel()
	nc := logtest.Start(t).Conn()
	l := logtest.Open(t, nc, eventlog.Config{ChunkAge: time.Second})
	gone := func() {
		natstest.Eventually(t, "the chunks to expire", func() bool {
			got, err := l.Streams().Direct(t.Context(), "SKEIN_CHUNKS", streams.GetRequest{Seq: 1, Next: "skein.chunk.>"})
			return err == nil && len(got) == 0
		})
	}
	r := chunkRun(1, 1)
	w := chunksOf(t, l, r)
	emit(t, w, "t", "a")
	natstest.Eventually(t, "a chunk", func() bool { return len(storedChunks(t, l, r, 0)) == 1 })
	gone()
	emit(t, w, "t", "b")
	logtest.Must(t, w.Close(t.Context()))
	if got := storedChunks(t, l, r, 1); len(got) != 1 || got[0].Index != 1 {
		t.Errorf("the same writer goes on with %+v", got)
	}
	gone()
	r.Token, r.Since = 3, time.Now().Add(-time.Hour)
	w = chunksOf(t, l, r)
	emit(t, w, "t", "c")
	logtest.Must(t, w.Close(t.Context()))
	if got := storedChunks(t, l, r, 2*chunks.ClaimNumbers); len(got) != 1 {
		t.Errorf("a later claim goes on with %+v", got)
	}
	young := chunkRun(2, 2)
	w = chunksOf(t, l, young)
	emit(t, w, "t", "d")
	logtest.Must(t, w.Close(t.Context()))
	if got := storedChunks(t, l, young, 0); len(got) != 1 {
		t.Errorf("a young run begins with %+v", got)
	}
}

func TestBadChunksAreRefused(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	for name, spoil := range map[string]func(*chunks.Run){
		"tenant": func(r *chunks.Run) { r.Tenant = "a.b" }, "thread": func(r *chunks.Run) { r.Thread = ">" },
		"execution": func(r *chunks.Run) { r.Execution = "exe.*" }, "no execution": func(r *chunks.Run) { r.Execution = "" },
		"token": func(r *chunks.Run) { r.Token = 0 }, "version": func(r *chunks.Run) { r.Version = 0 },
	} {
		r := chunkRun(1, 1)
		spoil(&r)
		if _, err := chunks.NewWriter(l, r); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := chunksOf(t, l, chunkRun(1, 1))
	for name, bad := range map[string]struct{ step, kind, data string }{
		"type": {"", "a.b", "1"}, "finish": {"", "finish", `{"finishReason":"stop"}`}, "step": {"stp.1", "data-x", "1"},
		"data": {"", "data-x", "{"}, "fields": {"", "text-delta", `{"id":"1"}`},
	} {
		if err := w.Emit(t.Context(), bad.step, bad.kind, events.JSON(bad.data)); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := events.JSON(`"` + strings.Repeat("x", events.MaxEventBytes) + `"`)
	if err := w.Emit(t.Context(), "", "data-x", large); !errors.Is(err, &events.Error{Code: events.PayloadTooLarge}) {
		t.Errorf("a large chunk: %v", err)
	}
	logtest.Must(t, w.Emit(t.Context(), "", "data-x", nil)) // no data at all is fine for a kind that is not known
	logtest.Must(t, w.Close(t.Context()))
	if got := storedChunks(t, l, chunkRun(1, 1), 0); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// While the server is away, chunks wait; when there is no room for more, Emit blocks, and
// ends with its context.
func TestChunksWaitForTheServer(t *testing.T) {
	// Not parallel to the tests of leases, which depend on the clock.
	direct := logtest.Start(t)
	p := natstest.NewProxy(t, direct.Conn().ConnectedUrl())
	l := logtest.Open(t, p.Connect(t), eventlog.Config{AckTimeout: 2 * time.Second}) // half a megabyte takes some time
	p.DropReceived.Store(true)
	w := chunksOf(t, l, chunkRun(1, 1))
	part := events.JSON(`"` + strings.Repeat("x", 500<<10) + `"`)
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	n := 0
	for {
		one, called := context.WithTimeout(ctx, time.Second)
		err := w.Emit(one, "", "data-x", part)
		called()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		logtest.Must(t, err)
		n++
	}
	if n < 10 || n > 20 {
		t.Errorf("%d chunks of half a megabyte waited", n)
	}
	p.Cut()
	logtest.Must(t, w.Emit(ctx, "", "data-x", part))
	logtest.Must(t, w.Finish(ctx, events.Finish{Reason: events.FinishStop}))
	if got := storedChunks(t, direct, chunkRun(1, 1), 0); len(got) != n+2 {
		t.Errorf("%d chunks, not %d", len(got), n+2)
	}
}

// Chunks that cannot be stored are given up when their time is over, and when the log is
// closed.
func TestChunksAreGivenUp(t *testing.T) {
	t.Parallel()
	direct := logtest.Start(t)
	p := natstest.NewProxy(t, direct.Conn().ConnectedUrl())
	nc := p.Connect(t)
	l := logtest.Open(t, nc, eventlog.Config{AckTimeout: 300 * time.Millisecond})
	p.DropSent.Store(true)
	w := chunksOf(t, l, chunkRun(1, 1))
	emit(t, w, "t", "a")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.Finish(ctx, events.Finish{Reason: events.FinishStop}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its time is over: %v", err)
	}
	w = chunksOf(t, l, chunkRun(2, 1))
	emit(t, w, "t", "a")
	l.Close()
	var gone *eventlog.UnavailableError
	if err := w.Close(t.Context()); !errors.As(err, &gone) {
		t.Errorf("the log is closed: %v", err)
	}
	w = chunksOf(t, direct, chunkRun(3, 1))
	direct.Conn().Close()
	_ = w.Emit(t.Context(), "", "data-x", events.JSON("1"))
	if err := w.Close(t.Context()); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("the connection is closed: %v", err)
	}
}
