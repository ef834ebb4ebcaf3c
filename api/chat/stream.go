package chat

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
	"github.com/skein-threads/skein/schema/arguments"
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
		persons := personFinder{h.caller.Client, persons}
		source, err := runstream.Subscribe(ctx, h.now, runstream.Options{Thread: f.ThreadID, Execution: f.ExecutionID, From: f.from, Live: f.live, Before: persons.find})
		if err != nil {
			return err
		}
		defer source.Close()
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
				if err := out.Write(stream.Frame{Data: arguments.WithoutPrototype(raw)}); err != nil {
					return err
				}
			}
			return out.Flush()
		}
		if err := send(render.Start()); err != nil {
			return err
		}
		return runstream.Play(ctx, source, render, send)
	})
}

// personFinder finds out which tools ask a person.
type personFinder struct {
	client *client.Client
	known  map[string]bool // by tools that were called
}

// find finds out whether the tool of a call asks a person, before the call is shown.
func (f personFinder) find(ctx context.Context, e *events.Event) error {
	d, ok := e.Data.(events.PartCreated)
	if !ok {
		return nil
	}
	p := runview.ReadPart(d.Part)
	name := runview.Tool(p.Type)
	if _, known := f.known[name]; known || name == "" {
		return nil
	}
	found, err := client.Read(ctx, f.client, events.GetDefinition{Kind: events.ToolKind, Name: name})
	switch {
	case events.HasCode(err, events.NotFound, events.Forbidden, events.InvalidRequest):
		f.known[name] = false // a program's own
		return nil
	case err != nil:
		return err
	}
	def, err := events.DecodeDefinition(found.Kind, found.Definition)
	tool, ok := def.(events.ToolDefinition)
	f.known[name] = err == nil && ok && tool.Type == events.PersonTool
	return nil
}
