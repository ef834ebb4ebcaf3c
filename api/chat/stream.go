package chat

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/prototype"
	"github.com/skein-threads/skein/runview"
)

// headerStream tells clients of which protocol a stream is.
const (
	headerStream = "X-Vercel-Ai-Ui-Message-Stream"
	streamV1     = "v1"
	headerSDK    = "X-Ai-Sdk" // the major version of the client's AI SDK, if the page says it
)

// done ends a stream that is complete. A stream without it was cut off, and is resumed.
const done = "[DONE]"

// protocol is how the stream of a message ends. One that cannot continue is cut off, and its reader
// resumes it.
func protocol() stream.Protocol { return stream.Protocol{Done: &stream.Frame{Data: []byte(done)}} }

// stream answers with a message: from its beginning, until the run ends or waits for people.
func (h *chat) stream(w http.ResponseWriter, r *http.Request, f *follow) error {
	render := NewRenderer(f.Run)
	if major, err := strconv.Atoi(r.Header.Get(headerSDK)); err != nil || major < 7 {
		render.AppendOnly()
	}
	persons := map[string]bool{}
	render.Persons(persons)
	if f.after != nil {
		render.ResumeAfter(f.after)
	}
	return stream.Serve(w, r, protocol(), func(ctx context.Context, out *stream.Writer) error {
		source, err := h.subscribe(ctx, f)
		if err != nil {
			return err
		}
		defer source.close()
		w.Header().Set(headerStream, streamV1)
		if err := out.Begin(); err != nil {
			return err
		}
		send := func(chunks []Chunk) error {
			for i := range chunks {
				raw, err := json.Marshal(&chunks[i])
				if err != nil {
					return err
				}
				if err := out.Send(stream.Frame{Data: prototype.Without(raw)}); err != nil {
					return err
				}
			}
			return nil
		}
		if err := send(render.Start()); err != nil {
			return err
		}
		source.persons = persons
		return source.play(ctx, render, send)
	})
}

// source is what a message is made of: the events of its run, and its chunks.
type source struct {
	chat     *chat
	run      Run
	from     int64 // the version of the next event that is read from the history
	timeline *client.Timeline
	stop     context.CancelFunc
	persons  map[string]bool // by tools that were called: whether they ask a person
	began    chan struct{}   // closed when the run has begun: its message may wait in the agent's queue
	events   chan told[*events.Event]
	chunks   chan told[*events.ChunkEmitted]
}

// told is a value, or the error that ended its sequence.
type told[T any] struct {
	value T
	err   error
}

// subscribe begins to follow a run. The error is the answer to the request.
func (h *chat) subscribe(ctx context.Context, f *follow) (*source, error) {
	timeline, err := h.now.Timeline(ctx, client.SubscribeOptions{Thread: f.ThreadID, Types: runview.EventTypes(), From: client.Now()})
	if err != nil {
		return nil, err
	}
	return &source{
		chat: h, run: f.Run, from: f.from, timeline: timeline, began: make(chan struct{}),
		events: make(chan told[*events.Event]), chunks: make(chan told[*events.ChunkEmitted]),
	}, nil
}

func (s *source) close() {
	if s.stop != nil {
		s.stop()
	}
	s.timeline.Close()
}

// play hands everything to a Renderer, in the order that it needs, and sends what it returns,
// until the run has ended or waits for people. A wait in the history may be over: only one that
// nothing known follows ends the stream.
func (s *source) play(ctx context.Context, r *Renderer, send func([]Chunk) error) error {
	ctx, s.stop = context.WithCancel(ctx)
	go s.readEvents(ctx)
	go s.readChunks(ctx)
	var held *events.ChunkEmitted // cannot be taken before the next event
	live := false                 // the history was read
	r.History()
	for !r.Ended() {
		if live && r.Waiting() {
			return send(r.Pause())
		}
		chunks := s.chunks
		if held != nil {
			chunks = nil
		}
		var out []Chunk
		select {
		case e := <-s.events:
			if e.err != nil {
				return e.err
			}
			if e.value == nil {
				live = true
				if err := send(r.Live()); err != nil {
					return err
				}
				continue
			}
			if err := s.findPerson(ctx, e.value); err != nil {
				return err
			}
			out = r.Event(e.value)
			if held != nil && r.Takes(held) {
				out = append(out, r.Chunk(held)...)
				held = nil
			}
		case c := <-chunks:
			if c.err != nil {
				return c.err
			}
			if !r.Takes(c.value) {
				held = c.value
				continue
			}
			out = r.Chunk(c.value)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := send(out); err != nil {
			return err
		}
	}
	return nil
}

// findPerson finds out whether the tool of a call asks a person, before the call is shown.
func (s *source) findPerson(ctx context.Context, e *events.Event) error {
	d, ok := e.Data.(events.PartCreated)
	if !ok {
		return nil
	}
	p := runview.ReadPart(d.Part)
	name := runview.Tool(p.Type)
	if _, known := s.persons[name]; known || name == "" {
		return nil
	}
	found, err := client.Read(ctx, s.chat.caller.Client, events.GetDefinition{Kind: events.ToolKind, Name: name})
	switch {
	case events.HasCode(err, events.NotFound, events.Forbidden, events.InvalidRequest):
		s.persons[name] = false // a program's own
		return nil
	case err != nil:
		return err
	}
	def, err := events.DecodeDefinition(found.Kind, found.Definition)
	tool, ok := def.(events.ToolDefinition)
	s.persons[name] = err == nil && ok && tool.Type == events.PersonTool
	return nil
}

// tell sends a value to play, unless ctx ends first.
func tell[T any](ctx context.Context, to chan told[T], v told[T]) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// readEvents reads the run's events: first those of the history, then nil, and then the live ones,
// each once.
func (s *source) readEvents(ctx context.Context) {
	fail := func(err error) { tell(ctx, s.events, told[*events.Event]{err: err}) }
	now, err := s.chat.caller.Client.UpToDate(ctx) // later events are live
	if err != nil {
		fail(err)
		return
	}
	limit := int64(1000)
	last := s.from - 1
	for from := s.from; from > 0; {
		page, err := client.Read(ctx, now, events.ListEvents{ThreadID: s.run.ThreadID, FromVersion: &from, Types: runview.EventTypes(), Limit: &limit})
		if err != nil {
			fail(err)
			return
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				fail(err)
				return
			}
			last = e.Version
			if !s.pass(ctx, &e) {
				return
			}
		}
		from = page.NextVersion
	}
	if !tell(ctx, s.events, told[*events.Event]{}) {
		return
	}
	for {
		e, err := s.timeline.Next(ctx)
		if err != nil {
			fail(err)
			return
		}
		if e.Version > last && !s.pass(ctx, &e.Event) {
			return
		}
	}
}

// readChunks reads the run's chunks, from its beginning on.
func (s *source) readChunks(ctx context.Context) {
	select {
	case <-s.began:
	case <-ctx.Done():
		return
	}
	for c, err := range s.chat.now.Chunks(ctx, s.run.ThreadID, s.run.ExecutionID) {
		var gap *client.ChunkGapError
		switch {
		case errors.As(err, &gap): // the parts have what is missing
		case err != nil:
			tell(ctx, s.chunks, told[*events.ChunkEmitted]{err: err})
			return
		case !tell(ctx, s.chunks, told[*events.ChunkEmitted]{value: &c.ChunkEmitted}):
			return
		}
	}
}

// pass passes an event on, and notes the beginning of the run.
func (s *source) pass(ctx context.Context, e *events.Event) bool {
	if d, ok := e.Data.(events.ExecutionCreated); ok && d.ID == s.run.ExecutionID {
		close(s.began)
	}
	return tell(ctx, s.events, told[*events.Event]{value: e})
}
