package openresponses

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// noTemporary continues no temporary response: only the socket that began one does.
func noTemporary(string) bool { return false }

// create answers POST /v1/responses.
func create(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	body, err := edge.Body(r, edge.MaxMessageBody)
	if err != nil {
		return err
	}
	d, err := decodeCreate(body)
	if err != nil {
		return err
	}
	if !d.generates() {
		return events.Invalid("/generate", "a request over HTTP generates a response; generate: false is for a WebSocket")
	}
	key := r.Header.Get(edge.HeaderKey)
	if d.retry = retryOf(r); key != "" || d.retry.told {
		d.digest = edge.DigestOf(body)
	}
	if d.Stream || !d.Background {
		if err := c.Awaits(d.Stream); err != nil {
			return err
		}
	}
	b, err := begin(r.Context(), c, d, key, noTemporary)
	if err != nil {
		return err
	}
	if b.temporary != nil { // the run ends whether or not the client stays
		defer func() { go b.temporary.discard(context.WithoutCancel(r.Context())) }()
		stop := b.temporary.keep(r.Context())
		defer stop()
	}
	switch {
	case d.Stream:
		return b.stream(w, r)
	case d.Background && !b.repeated:
		res := newResource(b.id, b.echo, b.settings, d.Model)
		res.Status, res.CreatedAt = queuedStatus, created(b)
		edge.WriteJSON(w, http.StatusOK, res)
		return nil
	}
	l, err := b.shown(r.Context())
	if err != nil {
		return b.kept(err)
	}
	res, err := resourceOf(r.Context(), b.client, l, false)
	if err != nil {
		return b.kept(err)
	}
	edge.WriteJSON(w, http.StatusOK, res)
	return nil
}

// shown returns the body of the answer to a request over JSON: the leg as it is now in the
// background, otherwise when it has ended.
func (b *begun) shown(ctx context.Context) (leg, error) {
	switch {
	case b.request.Background && b.waiting != nil:
		return leg{x: b.waiting}, nil
	case b.request.Background:
		x, err := b.read(ctx)
		return leg{x: x, n: b.leg}, err
	case b.queued:
		_, blocked, err := begins(ctx, b.client, b.query())
		if err != nil || blocked != nil {
			return leg{x: b.planned()}, err
		}
	case b.reply != nil:
		x, err := b.read(ctx)
		if err != nil {
			return leg{}, err
		}
		return leg{x: x, n: b.leg, live: b.live}.ended(ctx, b.client)
	}
	return awaitLeg(ctx, b.client, b.query(), b.leg)
}

// stream answers with the events of a response that has been asked for.
func (b *begun) stream(w http.ResponseWriter, r *http.Request) error {
	x, err := b.execution(r.Context())
	if err != nil {
		return err
	}
	return sendAll(w, r, b.client, leg{x: x, n: b.leg, live: b.live}, -1)
}

// sendAll answers with the events of a response after one. The last event is always sent. A stream
// that is cut off says so, in an event with the number of the one before: it goes on after that.
func sendAll(w http.ResponseWriter, r *http.Request, c *client.Client, l leg, after int64) error {
	sent := after
	frame := func(v streamEvent) (stream.Frame, error) {
		raw, err := encode(v)
		return stream.Frame{Name: v.Type, Data: raw}, err
	}
	failure := func(err error, number int64) stream.Frame {
		p, _ := problemOf(err)
		f, _ := frame(streamEvent{Type: "error", SequenceNumber: number, Error: p}) // it is made of texts
		return f
	}
	cut := func(err error) stream.Frame { return failure(err, max(sent, 0)) }
	protocol := stream.Protocol{
		Done:    &stream.Frame{Data: []byte("[DONE]")},
		Failed:  func(err error) stream.Frame { return failure(err, sent+1) },
		Closing: cut, Revoked: func(e *events.Error) stream.Frame { return cut(e) },
	}
	return stream.Serve(w, r, protocol, func(ctx context.Context, out *stream.Writer) error {
		if err := out.Begin(); err != nil {
			return err
		}
		_, err := follow(ctx, c, l, wholeAttempts, sink{flush: out.Flush, send: func(v streamEvent) error {
			if v.SequenceNumber <= after && !ends(v.Type) {
				return nil
			}
			f, err := frame(v)
			if err != nil {
				return err
			}
			if err := out.Write(f); err != nil {
				return err
			}
			sent = v.SequenceNumber
			return nil
		}})
		return err
	})
}

// ends reports whether an event is the last of a response.
func ends(kind string) bool {
	return kind == "response.completed" || kind == "response.failed" || kind == "response.incomplete"
}

// found returns the leg of a response that can be read: it is stored, and was not deleted.
func found(ctx context.Context, c *edge.Caller, id string) (*client.Client, leg, error) {
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, leg{}, err
	}
	l, err := legOf(ctx, upToDate, id)
	if events.IsNotFound(err) {
		if x, wrong := runstream.Withdrawn(ctx, upToDate, id); wrong == nil {
			l, err = leg{x: x, record: &runstream.Record{Execution: x}, withdrawn: true}, nil
		}
	}
	if err != nil {
		return nil, leg{}, err
	}
	if e := echoOf(l.x); e != nil && e.Temporary {
		return nil, leg{}, noResponse(id)
	}
	if l.withdrawn {
		return upToDate, l, nil
	}
	if l.x.Finished {
		if _, err := client.Read(ctx, upToDate, events.GetItem{ThreadID: l.x.ThreadID, ItemID: l.x.ReactionItemID}); err != nil {
			if events.IsNotFound(err) {
				return nil, leg{}, noResponse(id)
			}
			return nil, leg{}, err
		}
	}
	return upToDate, l, nil
}

// retrieve answers GET /v1/responses/{id}.
func retrieve(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	var q struct {
		Stream        bool     `json:"stream"`
		StartingAfter *int64   `json:"starting_after"`
		Include       []string `json:"include"`
	}
	if err := readBody(r, &q); err != nil { // openai-go sends them there
		return err
	}
	v := r.URL.Query()
	if said := v.Get("stream"); said != "" {
		on, err := strconv.ParseBool(said)
		if err != nil {
			return events.Invalid("/stream", "stream is true or false")
		}
		q.Stream = on
	}
	if said := v.Get("starting_after"); said != "" {
		n, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			return events.Invalid("/starting_after", "starting_after is a sequence number")
		}
		q.StartingAfter = &n
	}
	q.Include = slices.Concat(q.Include, v["include"], v["include[]"])
	cl, l, err := found(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if q.Stream {
		return sendAll(w, r, cl, l, valueOr(q.StartingAfter, -1))
	}
	res, err := resourceOf(r.Context(), cl, l, slices.Contains(q.Include, serverTools))
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, res)
	return nil
}

// cancel answers POST /v1/responses/{id}/cancel. A response that has ended stays as it is.
func cancel(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	ctx := r.Context()
	cl, l, err := found(ctx, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if runstream.IsQueued(l.x) {
		removed, err := runstream.Unqueue(ctx, cl, l.x)
		if err != nil {
			return err
		}
		if removed {
			if cl, l, err = found(ctx, c, r.PathValue("id")); err != nil {
				return err
			}
		}
	}
	if p := l.pause(); !l.x.Finished && (p == nil || !p.Answered()) {
		_, err := cl.Send(ctx, l.x.ThreadID, events.CancelRun{ExecutionID: l.x.ID, Reason: "cancelled by its caller"})
		if err != nil && !events.HasCode(err, events.IllegalTransition) {
			return err
		}
		if l.x, err = cl.WaitRun(ctx, events.GetExecution{ThreadID: l.x.ThreadID, ExecutionID: l.x.ID}); err != nil {
			return err
		}
	}
	res, err := resourceOf(ctx, cl, l, false)
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, res)
	return nil
}

// remove answers DELETE /v1/responses/{id}: its items are no longer shown anywhere. A thread
// that has no others is deleted, with its contents.
func remove(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	id := r.PathValue("id")
	for try := 1; ; try++ {
		err := removeOnce(r.Context(), c, id)
		switch {
		case err == nil:
			edge.WriteJSON(w, http.StatusOK, deleted{id, "response", true})
			return nil
		case try == beginTries || !events.HasCode(err, events.VersionConflict): // otherwise the thread has changed meanwhile
			return err
		}
	}
}

// removeOnce removes a response. It fails with a version_conflict if what was its own thread has gone on
// since that was read.
func removeOnce(ctx context.Context, c *edge.Caller, id string) error {
	cl, l, err := found(ctx, c, id)
	if err != nil {
		return err
	}
	x := l.x
	if l.withdrawn { // nothing of it is shown
		return noResponse(id)
	}
	if !x.Finished {
		return events.Invalid("/id", "response %s has not ended; cancel it first", clipped(id))
	}
	thread, err := client.Read(ctx, cl, events.GetThread{ThreadID: x.ThreadID})
	if err != nil {
		return err
	}
	rest, err := client.Read(ctx, cl, events.ListItems{ThreadID: x.ThreadID})
	if err != nil {
		return err
	}
	input, own := inputIDs(x), x.Items()
	alone := rest.NextCursor == "" && thread.Run == nil && thread.Queued == 0
	for _, i := range rest.Items {
		alone = alone && (slices.Contains(own, i.ID) || slices.Contains(own, i.ParentItemID) || slices.Contains(input, i.ID))
	}
	if e := echoOf(x); alone && e != nil && e.Conversation == "" {
		_, err = cl.Send(ctx, x.ThreadID, events.DeleteThread{Purge: true}, client.ExpectVersion(thread.Version))
		return err
	}
	for _, item := range append(input, own...) {
		if _, err := cl.Send(ctx, x.ThreadID, events.DeleteMessage{ItemID: item}); err != nil && !events.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// deleted is the answer to a deletion.
type deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// inputIDs returns the items that a response answers.
func inputIDs(x *events.Execution) []string {
	if e := echoOf(x); e != nil {
		return slices.Clone(e.Input)
	}
	return []string{x.TriggerItemID}
}

// inputItems answers GET /v1/responses/{id}/input_items.
func inputItems(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	cl, l, err := found(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	list := []transform.Item{}
	for _, id := range inputIDs(l.x) {
		item, err := client.Read(r.Context(), cl, events.GetItem{ThreadID: l.x.ThreadID, ItemID: id})
		if events.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !item.Silent {
			list = append(list, piecesOf(item, false)...)
		}
	}
	return writePage(w, r, list)
}

// writePage answers with a page of items, newest first unless the request says otherwise.
func writePage(w http.ResponseWriter, r *http.Request, list []transform.Item) error {
	q, err := pageOf(r)
	if err != nil {
		return err
	}
	if !q.ascending {
		slices.Reverse(list)
	}
	if q.after != "" {
		at := slices.IndexFunc(list, func(o transform.Item) bool { return o.ID == q.after })
		if at < 0 {
			return events.Invalid("/after", "there is no item %s in this list", clipped(q.after))
		}
		list = list[at+1:]
	}
	p := page{Object: "list", Data: list}
	if len(list) > q.limit {
		p.Data, p.HasMore = list[:q.limit], true
	}
	if n := len(p.Data); n > 0 {
		p.FirstID, p.LastID = p.Data[0].ID, p.Data[n-1].ID
	}
	edge.WriteJSON(w, http.StatusOK, p)
	return nil
}

// page is a page of items.
type page struct {
	Object  string           `json:"object"`
	Data    []transform.Item `json:"data"`
	FirstID string           `json:"first_id"`
	LastID  string           `json:"last_id"`
	HasMore bool             `json:"has_more"`
}

// pageQuery says which page a request asks for.
type pageQuery struct {
	after     string
	limit     int
	ascending bool
}

func pageOf(r *http.Request) (pageQuery, error) {
	v := r.URL.Query()
	q := pageQuery{after: v.Get("after"), limit: 20}
	if said := v.Get("limit"); said != "" {
		n, err := strconv.Atoi(said)
		if err != nil || n < 1 || n > 100 {
			return q, events.Invalid("/limit", "a limit is 1 to 100")
		}
		q.limit = n
	}
	switch v.Get("order") {
	case "", "desc":
	case "asc":
		q.ascending = true
	default:
		return q, events.Invalid("/order", "an order is asc or desc")
	}
	return q, nil
}
