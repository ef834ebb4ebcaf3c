package runstream

import (
	"context"
	"slices"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// Live follows a run from before the command that begins it, so that nothing of the run needs to be
// queried. A nil Live means that the run is read by queries.
//
//	live := runstream.Ahead(ctx, client, thread)
//	reply, err := client.Commit(ctx, thread, commands)
//	live = live.Begun(reply)
//	...
type Live struct {
	thread string
	since  events.Time
	ahead  *client.Ahead
	unbind func() bool // from the context
	reply  *events.Reply
}

// Ahead subscribes to a thread, which need not exist yet, until ctx ends or Close is called. It returns
// nil if that is not possible: queries say why.
func Ahead(ctx context.Context, c *client.Client, thread string) *Live {
	since := events.TimeOf(time.Now().Truncate(time.Millisecond)) // as a reply has times
	ahead, err := c.Ahead(ctx, thread)
	if err != nil {
		return nil
	}
	return &Live{thread: thread, since: since, ahead: ahead, unbind: context.AfterFunc(ctx, ahead.Close)}
}

// Begun notes the reply to the command. It returns nil, and closes l, if the command has failed and the
// reply is nil, and if it was executed on another thread, or before: it was a repeat. (A repeat that the
// clocks hide is only followed a second later.)
func (l *Live) Begun(reply *events.Reply) *Live {
	if l == nil {
		return nil
	}
	if reply == nil || reply.ThreadID != l.thread || l.precededBy(reply) {
		l.Close()
		return nil
	}
	l.reply = reply
	return l
}

// precededBy reports whether a command was executed before its thread was followed.
func (l *Live) precededBy(reply *events.Reply) bool {
	at, err := events.ParseTime(reply.Time)
	return err == nil && at < l.since
}

// Close ends the following.
func (l *Live) Close() {
	if l != nil {
		l.unbind()
		l.ahead.Close()
	}
}

// Chunks makes [client.Client.Chunks] read the run's chunks, while its events are read.
func (l *Live) Chunks() client.ChunkOption { return l.ahead.Chunks() }

// Record is the progress of a run, folded from the events of its thread: what execution.get,
// step.list and part.list tell of it.
type Record struct {
	Execution *events.Execution
	Steps     []string // ids, in order
	parts     map[string][]part
}

// part is a part of a step, at its place.
type part struct {
	idx int64
	raw events.JSON
}

// Record blocks until enough is true of the record of a run, and returns it then. x is its execution as
// the command has made it: see [Begin]. An error that is not ctx's says that the events cannot be followed
// on, or that the thread was deleted: queries tell more.
func (l *Live) Record(ctx context.Context, x *events.Execution, enough func(*Record) bool) (*Record, error) {
	timeline := l.ahead.Timeline(l.reply, recordTypes())
	at := *x
	at.Approvals = slices.Clone(x.Approvals)
	r := &Record{Execution: &at, parts: map[string][]part{}}
	for {
		e, err := timeline.Next(ctx)
		if err != nil {
			return nil, err
		}
		if _, deleted := e.Data.(events.LifecycleDeleted); deleted {
			return nil, events.MissingThread(e.ThreadID)
		}
		if r.event(&e); enough(r) {
			return r, nil
		}
	}
}

func recordTypes() []string {
	types := []string{string(events.PartCreatedType), string(events.PartUpdatedType), string(events.LifecycleDeletedType)}
	for _, t := range runview.ExecutionTypes() {
		types = append(types, string(t))
	}
	return types
}

// event applies an event of the thread.
func (r *Record) event(e *client.Event) {
	x := r.Execution
	switch d := e.Data.(type) {
	case events.PartCreated:
		r.put(d.StepID, part{d.Idx, d.Part})
	case events.PartUpdated:
		r.put(d.StepID, part{d.Idx, d.Part})
	case events.StepCreated:
		if d.ExecutionID == x.ID {
			r.Steps = append(r.Steps, d.ID)
		}
	}
	if e.Version <= x.Version { // it shows that
		return
	}
	if id, changes := runview.ExecutionOf(&e.Event); changes && id == x.ID {
		runview.Execute(x, &e.Event)
	}
	x.Version, x.Seq = e.Version, e.Seq
}

// put notes a part of a step of the run.
func (r *Record) put(step string, p part) {
	if !slices.Contains(r.Steps, step) {
		return
	}
	list := r.parts[step]
	at, there := slices.BinarySearchFunc(list, p.idx, func(p part, idx int64) int { return int(p.idx - idx) })
	if there {
		list[at] = p
		return
	}
	r.parts[step] = slices.Insert(list, at, p)
}

// Parts returns the parts of a step, in order.
func (r *Record) Parts(step string) []events.JSON {
	var list []events.JSON
	for _, p := range r.parts[step] {
		if p.raw != nil {
			list = append(list, p.raw)
		}
	}
	return list
}
