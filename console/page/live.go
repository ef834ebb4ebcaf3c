package page

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// gather is how long the live handler waits for further events before it loads a panel.
const gather = 20 * time.Millisecond

// live returns the handler of a page's stream: patches of its panels, as server-sent events.
func (s *server) live(p Page) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		if err := s.admits(c, p); err != nil {
			return err
		}
		a, err := newAsk(ofPage(r), c)
		if err != nil {
			return err
		}
		o := client.SubscribeOptions{From: client.Now(), Types: typesOf(p), Aggregates: a.Thread == nil}
		if a.Thread != nil {
			o.Thread, o.From = a.Thread.ID, seenBy(r)
		}
		return stream.Serve(w, r, protocol(), func(ctx context.Context, out *stream.Writer) error {
			line, err := c.Client.Timeline(ctx, o)
			if err != nil {
				return err
			}
			defer line.Close()
			if err := out.Begin(); err != nil {
				return err
			}
			f := &follower{server: s, page: p, ask: a, stream: out, log: line.Log(), dirty: map[string]bool{}}
			return f.run(ctx, line)
		})
	}
}

// protocol is how the stream of a page ends: a browser resumes it, unless its session has ended.
func protocol() stream.Protocol {
	return stream.Protocol{Revoked: func(ended *events.Error) stream.Frame {
		return stream.Frame{Name: "ended", Data: []byte(ended.Message)}
	}}
}

// ofPage returns the request of a stream with the address of its page, so that links in panels are
// relative to the page.
func ofPage(r *http.Request) *http.Request {
	of := r.Clone(r.Context())
	of.URL.Path, of.URL.RawPath = strings.Replace(r.URL.Path, Root+"/live", Root, 1), ""
	q := of.URL.Query()
	q.Del("seq")
	of.URL.RawQuery = q.Encode()
	of.RequestURI = of.URL.RequestURI()
	return of
}

// seenBy returns the commit from which a browser continues: the last one that it has seen, perhaps
// only in part, or the one that its page shows.
func seenBy(r *http.Request) client.Position {
	last := r.Header.Get(stream.HeaderLast)
	if last == "" {
		last = r.URL.Query().Get("seq")
	}
	if p, ok := events.ParsePosition(last); ok && p.Seq > 0 {
		return client.At(p)
	}
	return client.Now()
}

// typesOf returns the types of events that a page follows.
func typesOf(p Page) []string {
	var types []string
	for _, panel := range p.Panels {
		types = append(types, panel.On...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// matches reports whether a type of event is one of patterns.
func matches(patterns []string, kind string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		entity, all := strings.CutSuffix(p, "*")
		return p == kind || all && strings.HasPrefix(kind, entity)
	})
}

// follower sends the patches of one open page.
type follower struct {
	*server
	page   Page
	ask    *Ask
	stream *stream.Writer
	log    string          // the log of the sequences
	dirty  map[string]bool // panels to load again
	last   client.Event
	took   time.Duration // how long the last load took
}

// run follows a timeline until the context ends or the reader goes.
func (f *follower) run(ctx context.Context, line *client.Timeline) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	moving := make(chan client.Event)
	ended := make(chan error, 2)
	go func() { ended <- forward(ctx, line, moving) }()
	if f.page.Follow != nil {
		own := *f.ask
		own.Request = f.ask.Request.WithContext(ctx)
		go func() {
			if err := f.page.Follow(&own, f.send); err != nil {
				ended <- err
			}
		}()
	}
	for _, p := range f.page.Panels { // load what changed before the subscription
		f.dirty[p.ID] = p.Row == nil
	}
	if err := f.flush(); err != nil {
		return err
	}
	var due <-chan time.Time
	for {
		var err error
		select {
		case e := <-moving:
			if err = f.take(e); err == nil && due == nil {
				due = time.After(max(gather, 4*f.took)) // so that a busy tenant does not keep the server busy
			}
		case <-due:
			due, err = nil, f.flush()
		case err = <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// forward sends the events of a timeline to a channel.
func forward(ctx context.Context, line *client.Timeline, to chan<- client.Event) error {
	for e, err := range line.All(ctx) {
		if err != nil {
			if errors.As(err, new(*events.BrokenError)) {
				continue
			}
			return err
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// take records which panels an event changes, and sends the changed rows.
func (f *follower) take(e client.Event) error {
	f.last = e
	for _, p := range f.page.Panels {
		if !matches(p.On, string(e.Type)) {
			continue
		}
		if p.Row == nil {
			f.dirty[p.ID] = true
			continue
		}
		row, err := p.Row(f.ask.at(e.Seq), e)
		if err != nil {
			return err
		}
		if row != nil {
			if err := f.sendRow(p, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *follower) sendRow(p Panel, row *Row) error {
	patch := Patch{Panel: p.ID, Row: row.ID}
	if row.Data != nil {
		html, err := f.render(row.Template, &View{Ask: f.ask, Page: f.page, Data: row.Data, site: f.server})
		if err != nil {
			return err
		}
		patch.HTML = string(html)
	}
	return f.send(patch)
}

// flush loads and sends the changed panels.
func (f *follower) flush() error {
	began := time.Now()
	defer func() { f.took = min(time.Since(began), time.Second) }()
	a := f.ask
	if f.last.Seq > 0 {
		var err error
		if a, err = f.ask.refreshed(f.last); err != nil {
			return err
		}
		f.ask = a
	}
	if err := f.sendHead(); err != nil {
		return err
	}
	for _, p := range f.page.Panels {
		if !f.dirty[p.ID] {
			continue
		}
		f.dirty[p.ID] = false
		html, err := f.panel(a, f.page, p)
		if err != nil {
			return err
		}
		if err := f.send(Patch{Panel: p.ID, HTML: string(html), Digest: digest(html)}); err != nil {
			return err
		}
	}
	// A browser that reconnects names the commit, and continues with it.
	return f.stream.Send(stream.Frame{ID: events.Position{Seq: f.last.Seq, Log: f.log}.String(), Name: "seen"})
}

// sendHead sends the head of the thread: its state and its version.
func (f *follower) sendHead() error {
	if f.page.In != Tabs || f.ask.Thread == nil {
		return nil
	}
	html, err := f.render("thread-head", &View{Ask: f.ask, Page: f.page, site: f.server})
	if err != nil {
		return err
	}
	return f.send(Patch{Panel: "thread-head", HTML: string(html), Digest: digest(html)})
}

// send sends a patch. It is safe for concurrent use.
func (f *follower) send(p Patch) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return f.stream.Send(stream.Frame{Name: "patch", Data: raw})
}
