package rest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// observeEvery is the pause between two states of an observed thread.
const observeEvery = 100 * time.Millisecond

// Frames to the client.
type (
	eventFrame struct {
		Type  string         `json:"type"`
		Event jsontext.Value `json:"event"`
	}
	chunkFrame struct {
		Type  string              `json:"type"`
		Chunk events.ChunkEmitted `json:"chunk"`
	}
	gapFrame struct {
		Type string   `json:"type"`
		Gap  chunkGap `json:"gap"`
	}
	liveFrame struct {
		Type string         `json:"type"`
		Name string         `json:"name"`
		Data jsontext.Value `json:"data"`
	}
	threadFrame struct {
		Type   string         `json:"type"`
		Thread jsontext.Value `json:"thread"`
	}
)

// watch begins to send what a frame asks for. When it returns, no later live event is missed.
func (k *socket) watch(ctx context.Context, f frame) error {
	if len(f.What) == 0 {
		return events.Invalid("/what", "what must list some of events, chunks, live, thread")
	}
	for _, what := range f.What {
		switch {
		case what != "events" && what != "chunks" && what != "live" && what != "thread":
			return events.Invalid("/what", "%.40q cannot be watched; events, chunks, live and thread can", what)
		case k.watched[what]:
			return events.Invalid("/what", "%s are watched already", what)
		}
	}
	if f.From != nil && (*f.From < 0 || *f.From >= 1<<53) {
		return events.Invalid("/from", "from must be the version of the last event that was seen")
	}
	if err := k.checkPosition(ctx, f); err != nil {
		return err
	}
	for _, what := range f.What {
		if k.watched[what] { // twice in one frame
			continue
		}
		k.watched[what] = true
		switch what {
		case "events":
			from := int64(0)
			if f.From != nil {
				from = *f.From
			}
			k.Go(func() { k.watchEvents(ctx, from, f.Log) })
		case "chunks":
			k.Go(func() { k.watchChunks(ctx) })
		case "live":
			live, err := k.caller.Client.LiveEvents(ctx, k.thread)
			if err != nil {
				return err
			}
			k.Go(func() { k.watchLive(ctx, live) })
		case "thread":
			k.Go(func() { k.watchThread(ctx) })
		}
	}
	return nil
}

// checkPosition returns a position_ahead if a frame names another log, or a version that the thread
// has not reached.
func (k *socket) checkPosition(ctx context.Context, f frame) error {
	if f.Log != "" && !events.ValidID(f.Log) {
		return events.Invalid("/log", "log is %.40q; it takes the name of a log, as the header %s has it", f.Log, headerLog)
	}
	if f.Log == "" && (f.From == nil || *f.From == 0) {
		return nil
	}
	q := events.ListEvents{ThreadID: k.thread, Log: f.Log, Limit: new(int64(1))}
	if f.From != nil {
		q.FromVersion = new(*f.From + 1)
	}
	_, err := client.Read(ctx, k.caller.Client, q)
	return err
}

// reader returns a reader of the thread's events after a version.
func (k *socket) reader(after int64, types []string, send func(version int64, data []byte) error) *reader {
	return &reader{
		feeds: k.service.feeds, client: k.caller.Client, scope: scopeOf(k.caller.Principal), thread: k.thread, types: types, seen: after, ready: func() {},
		send: func(e entry) error { return send(e.version, e.data) },
	}
}

// ended ends the socket when what it watches cannot be read any more: the client resumes with
// another one.
func (k *socket) ended(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		k.End()
	}
}

func (k *socket) watchEvents(ctx context.Context, after int64, log string) {
	r := k.reader(after, nil, func(_ int64, data []byte) error { return k.send(eventFrame{"event", data}) })
	r.log = log
	k.ended(ctx, r.read(ctx))
}

func (k *socket) watchLive(ctx context.Context, live *client.Live) {
	defer live.Close()
	for e := range live.All(ctx) {
		if k.send(liveFrame{"live", e.Event, jsontext.Value(e.Data)}) != nil {
			return
		}
	}
}

// watchChunks sends the chunks of every run that is active, and of those that follow.
func (k *socket) watchChunks(ctx context.Context) {
	var runs sync.WaitGroup
	defer runs.Wait()
	known := map[string]bool{}
	follow := func(execution string) {
		if !known[execution] {
			known[execution] = true
			runs.Go(func() { k.sendRun(ctx, execution) })
		}
	}
	after, active, err := activeRuns(ctx, k.caller.Client, k.thread)
	if err != nil {
		k.ended(ctx, err)
		return
	}
	for i := range active {
		follow(active[i].ID)
	}
	r := k.reader(after, []string{string(events.ExecutionCreatedType)}, func(_ int64, data []byte) error {
		follow(subjectOf(data))
		return nil
	})
	k.ended(ctx, r.read(ctx))
}

// sendRun sends the chunks of a run.
func (k *socket) sendRun(ctx context.Context, execution string) {
	for chunk, err := range k.caller.Client.Chunks(ctx, k.thread, execution) {
		var gap *client.ChunkGapError
		switch {
		case errors.As(err, &gap):
			err = k.send(gapFrame{"gap", chunkGap{gap.ExecutionID, gap.From, gap.To}})
		case err != nil:
			k.ended(ctx, err)
		default:
			if chunk.Type == events.ChunkFinish {
				showEnd(ctx, k.caller, k.thread)
			}
			err = k.send(chunkFrame{"chunk", chunk.ChunkEmitted})
		}
		if err != nil {
			return
		}
	}
}

// latest holds the latest version that was not sent. It has room for one, and one sender.
type latest chan int64

// note replaces what it holds.
func (l latest) note(version int64) {
	select {
	case <-l: // an older one
	default:
	}
	l <- version // there is room
}

// watchThread sends the thread's document now and after changes: at most every observeEvery,
// and always the last one.
func (k *socket) watchThread(ctx context.Context) {
	changed := make(latest, 1)
	doc, err := client.Read(ctx, k.caller.Client, events.GetThread{ThreadID: k.thread})
	if err != nil {
		k.ended(ctx, err)
		return
	}
	changed.note(doc.Version)
	var sending sync.WaitGroup
	defer sending.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sending.Go(func() { k.sendStates(ctx, changed) })
	r := k.reader(doc.Version, nil, func(version int64, _ []byte) error {
		changed.note(version)
		return nil
	})
	k.ended(ctx, r.read(ctx))
}

// sendStates sends the thread's document for each version that it is told.
func (k *socket) sendStates(ctx context.Context, changed latest) {
	for {
		select {
		case version := <-changed:
			answer, err := k.caller.Client.Query(ctx, "thread.document", events.GetThreadDocument{ThreadID: k.thread, Fresh: events.Fresh{MinVersion: &version}})
			if err != nil {
				k.ended(ctx, err)
				return
			}
			if k.send(threadFrame{"thread", answer}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(observeEvery):
		case <-ctx.Done():
			return
		}
	}
}
