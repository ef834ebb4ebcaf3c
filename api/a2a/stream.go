package a2a

import (
	"context"
	"strings"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// wait waits until a run has ended, or waits for people.
func (f *run) wait(ctx context.Context) error {
	return f.play(ctx, runview.New(f.execution), func([]runview.Frame) error { return nil })
}

// waitEnd waits until a run has ended that was told to.
func (f *run) waitEnd(ctx context.Context) error {
	return f.play(ctx, unpaused{runview.New(f.execution)}, func([]runview.Frame) error { return nil })
}

func (f *run) play(ctx context.Context, view runstream.View[runview.Frame], send func([]runview.Frame) error) error {
	source, err := runstream.Subscribe(ctx, f.now, runstream.Options{Thread: f.thread, Execution: f.execution, From: f.from, Live: f.live})
	if f.live = nil; err != nil { // another reading begins later
		return err
	}
	defer source.Close()
	return runstream.Play(ctx, source, view, send)
}

// unpaused is a view of a run that is followed while it waits for people.
type unpaused struct{ *runview.View }

// Waiting implements [runstream.View].
func (unpaused) Waiting() bool { return false }

// watched is a view that says when the history was read.
type watched struct {
	*runview.View
	live *bool
}

// Live implements [runstream.View].
func (v watched) Live() []runview.Frame {
	*v.live = true
	return v.View.Live()
}

func (f *run) setHeaders() {
	f.o.w.Header().Set(headerThread, f.thread)
	f.o.w.Header().Set(headerExecution, f.execution)
}

// stream answers with the task, and then with what is new of it.
func (f *run) stream(history *int) error {
	f.setHeaders()
	failed := func(err error) stream.Frame { return f.o.failed(tell(f.o.w, err)) }
	protocol := stream.Protocol{Failed: failed, Closing: failed, Revoked: func(e *events.Error) stream.Frame { return failed(e) }}
	return stream.Serve(f.o.w, f.o.r, protocol, func(ctx context.Context, out *stream.Writer) error {
		return f.write(ctx, history, func(list ...update) error {
			for _, u := range list {
				frame, err := f.o.frame(f.o.version.update(u))
				if err != nil {
					return err
				}
				if err := out.Write(frame); err != nil {
					return err
				}
			}
			return out.Flush()
		})
	})
}

// write sends the updates of a task.
func (f *run) write(ctx context.Context, history *int, send func(...update) error) error {
	encode := newEncoder(f)
	live, begun := false, false
	err := f.play(ctx, watched{runview.New(f.execution), &live}, func(frames []runview.Frame) error {
		list := encode.encode(frames)
		switch {
		case begun:
			return send(list...)
		case !live:
			return nil
		}
		t, err := f.task(ctx, history, false)
		if err != nil {
			return err
		}
		if t.Status.terminal() || t.Status.State == inputRequired { // what led there is yet to come
			t.Status = status{State: working, Timestamp: t.Status.Timestamp}
		}
		encode.working = t.Status.State == working
		begun, t.Artifacts = true, encode.shown()
		return send(update{Task: &t})
	})
	if err != nil {
		return err
	}
	t, err := f.task(ctx, history, false)
	if err != nil {
		return err
	}
	if encode.end == nil && !encode.gone && t.Status.State != inputRequired { // people have answered meanwhile
		t.Status = status{State: inputRequired, Timestamp: t.Status.Timestamp}
	}
	if !begun {
		t.Artifacts = encode.shown()
		return send(update{Task: &t})
	}
	if t.Status.terminal() {
		if err := send(encode.finish()...); err != nil {
			return err
		}
	}
	return send(update{Status: &statusUpdate{TaskID: t.ID, ContextID: t.ContextID, Status: t.Status}})
}

// encoder turns the frames of a run into updates. It does no I/O.
type encoder struct {
	task, context string
	thread, base  string
	working       bool // the client knows that it is worked on

	items  []*growing
	at     *growing        // that is written
	before map[string]mark // by step
	texts  map[textKey]*strings.Builder

	end  *runview.Finished // of the run
	gone bool              // it will not begin, or the thread was deleted
	out  []update
}

// growing is an artifact that is written.
type growing struct {
	id     string
	pieces []piece
	sent   bool // the client has some of it
	again  bool // the client has what was taken back
}

// piece is a part of an artifact, or a text of it.
type piece struct {
	part
	text *strings.Builder
}

// mark is where a step begins.
type mark struct {
	of     *growing
	pieces int
}

// textKey names a text of a run.
type textKey struct {
	step string
	n    int
}

func newEncoder(f *run) *encoder {
	return &encoder{
		task: f.execution, context: f.context, thread: f.thread, base: f.o.server.edge.BaseURL(f.o.r), before: map[string]mark{}, texts: map[textKey]*strings.Builder{},
	}
}

// encode returns frames as updates.
func (e *encoder) encode(frames []runview.Frame) []update {
	e.out = nil
	for _, f := range frames {
		e.frame(f)
	}
	return e.out
}

func (e *encoder) frame(f runview.Frame) {
	switch f := f.(type) {
	case runview.StepStarted:
		e.startStep(f.Step)
	case runview.StepReset:
		e.resetStep(f.ID)
	case runview.TextDelta:
		e.text(f)
	case runview.Data:
		if p, is := partOf(attachment.Served(f.JSON, e.thread), e.base); is && f.Recorded && e.at != nil {
			e.add(piece{part: p})
		}
	case runview.Finished:
		e.end = &f
	case runview.Removed, runview.Deleted:
		e.gone = true
	}
}

func (e *encoder) startStep(s runview.Step) {
	if !e.working {
		e.working = true
		e.out = append(e.out, update{Status: &statusUpdate{TaskID: e.task, ContextID: e.context, Status: status{State: working}}})
	}
	if e.at == nil || e.at.id != s.ItemID {
		e.at = &growing{id: s.ItemID}
		e.items = append(e.items, e.at)
	}
	e.before[s.ID] = mark{e.at, len(e.at.pieces)}
}

// resetStep takes back what a step has shown.
func (e *encoder) resetStep(step string) {
	m, known := e.before[step]
	if !known || len(m.of.pieces) == m.pieces {
		return
	}
	m.of.pieces, m.of.again = m.of.pieces[:m.pieces:m.pieces], m.of.sent
	for t := range e.texts {
		if t.step == step {
			delete(e.texts, t)
		}
	}
}

func (e *encoder) text(f runview.TextDelta) {
	if f.Kind != runview.PlainText || f.Delta == "" || e.at == nil {
		return
	}
	key := textKey{f.StepID, f.N}
	if b := e.texts[key]; b != nil {
		b.WriteString(f.Delta)
		e.emit(textPart(f.Delta))
		return
	}
	b := &strings.Builder{}
	b.WriteString(f.Delta)
	e.texts[key] = b
	e.add(piece{text: b})
}

func (e *encoder) add(p piece) {
	e.at.pieces = append(e.at.pieces, p)
	e.emit(p.whole())
}

// emit sends a part that the artifact has last, or the artifact from its beginning.
func (e *encoder) emit(p part) {
	u := &artifactUpdate{TaskID: e.task, ContextID: e.context, Artifact: artifact{e.at.id, []part{p}}, Append: e.at.sent && !e.at.again}
	if !u.Append {
		u.Artifact.Parts = e.at.parts()
	}
	e.at.sent, e.at.again = true, false
	e.out = append(e.out, update{Artifact: u})
}

func (p *piece) whole() part {
	if p.text != nil {
		return textPart(p.text.String())
	}
	return p.part
}

func (g *growing) parts() (list []part) {
	for i := range g.pieces {
		list = append(list, g.pieces[i].whole())
	}
	return list
}

// shown returns the artifacts as they are.
func (e *encoder) shown() (list []artifact) {
	for _, g := range e.items {
		if len(g.pieces) > 0 {
			g.sent, g.again = true, false
			list = append(list, artifact{g.id, g.parts()})
		}
	}
	return list
}

// finish returns the ends of the artifacts.
func (e *encoder) finish() (list []update) {
	for _, g := range e.items {
		if g.sent {
			u := &artifactUpdate{TaskID: e.task, ContextID: e.context, Artifact: artifact{g.id, []part{textPart("")}}, Append: !g.again, Last: true}
			if g.again && len(g.pieces) > 0 {
				u.Artifact.Parts = g.parts()
			}
			list = append(list, update{Artifact: u})
		}
	}
	return list
}
