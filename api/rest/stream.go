package rest

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func streamRows() []Row {
	const thread = "/api/threads/{thread}"
	return []Row{
		{Method: "GET", Path: thread + "/events", serve: (*service).threadEvents, shows: shown{parameters: eventParameters(), answer: streamAnswer},
			Doc: "Every event of the thread, as server-sent events whose id is its version; a page of them, as event.list has it, with Accept: application/json, or with a limit or toVersion, the last version that is shown."},
		{Method: "GET", Path: thread + "/chunks", serve: (*service).threadChunks, shows: shown{parameters: chunkParameters(), answer: streamAnswer},
			Doc: "The chunks of a run, as server-sent events whose id is the index; of the current run, or else the next one, if none is named."},
		{Method: "GET", Path: thread + "/socket", serve: (*service).socket, shows: shown{answer: socketAnswer}, Doc: "A WebSocket on the thread."},
		{Method: "GET", Path: "/api/events", serve: (*service).tenantEvents, shows: shown{parameters: tenantParameters(), answer: streamAnswer},
			Doc: "The events of the tenant, as server-sent events whose id is the sequence in the log, the event's place in its commit, and the log's name."},
	}
}

// Parameters of the streams.
func eventParameters() []field {
	return []field{{name: "from", kind: wholeKind}, {name: "toVersion", kind: wholeKind}, {name: "types", kind: listKind}, {name: "limit", kind: wholeKind}, {name: "log", kind: textKind}}
}

// pageParameters are those that ask for a page: a stream has no end.
func pageParameters() []string { return []string{"limit", "toVersion"} }

func chunkParameters() []field {
	return []field{{name: "execution", kind: textKind}, {name: "log", kind: textKind}}
}

func tenantParameters() []field {
	return []field{{name: "from", kind: textKind}, {name: "types", kind: listKind}, {name: "log", kind: textKind}}
}

// texts returns the parameters of a stream: single ones, and the list types.
func texts(req *http.Request, known []field) (single map[string]string, types []string, err error) {
	data, err := decodeParameters(req, known, nil)
	if err != nil {
		return nil, nil, err
	}
	single = map[string]string{}
	for name, value := range data {
		switch {
		case name == "types":
			err = json.Unmarshal(value, &types)
		case value.Kind() == '0':
			single[name] = string(value)
		default:
			var text string
			err = json.Unmarshal(value, &text)
			single[name] = text
		}
		if err != nil {
			return nil, nil, events.Invalid("/"+name, "%s cannot be read: %w", name, err)
		}
	}
	return single, types, checkTypes(types)
}

// checkTypes refuses patterns that no type of event can match.
func checkTypes(types []string) error {
	for _, one := range types {
		entity, all := strings.CutSuffix(one, ".*")
		if !all {
			entity = one
		}
		if one != "*" && (entity == "" || strings.ContainsAny(entity, "*> \t\r\n")) {
			return events.Invalid("/types", "%.80q is not a pattern of event types; use item.created, or item.* for all of an entity", one)
		}
	}
	if len(types) > 64 {
		return events.Invalid("/types", "types has %d patterns; at most 64 are possible", len(types))
	}
	return nil
}

// threadOf returns the id of the thread that the path names, by its id or key. The error is a
// not_found if there is none.
func threadOf(req *http.Request, c *client.Client) (string, error) {
	q := events.GetThread{ThreadID: req.PathValue("thread")}
	data := object{}
	if err := setMinSeq(req, data, []field{{name: "minSeq", kind: wholeKind}}); err != nil {
		return "", err
	}
	if seq, ok := parseWhole(string(data["minSeq"])); ok {
		q.MinSeq = &seq
	}
	doc, err := client.Read(req.Context(), c, q)
	if err != nil {
		return "", err
	}
	return doc.ID, nil
}

// threadEvents sends the events of a thread.
func (s *service) threadEvents(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	single, types, err := texts(req, eventParameters())
	if err != nil {
		return err
	}
	next, given, err := position(req, single)
	if err != nil {
		return err
	}
	log, err := namedLog(req, single)
	if err != nil {
		return err
	}
	if !given {
		next = 1
	}
	asked := slices.IndexFunc(pageParameters(), func(name string) bool { return single[name] != "" })
	if wantsJSON(req) || asked >= 0 && !acceptsStream(req) {
		return eventPage(w, req, c, single, events.ListEvents{FromVersion: &next, Log: log, Types: types})
	}
	if asked >= 0 {
		name := pageParameters()[asked]
		return events.Invalid("/"+name, "a stream has no %s; leave it out, or do not send Accept: text/event-stream", name)
	}
	thread, err := threadOf(req, c.Client)
	if err != nil {
		return err
	}
	return stream.Serve(w, req, stream.Protocol{}, func(ctx context.Context, out *stream.Writer) error {
		r := reader{feeds: s.feeds, client: c.Client, scope: scopeOf(c.Principal), thread: thread, types: types, seen: next - 1, log: log}
		r.ready = func() {
			w.Header().Set(headerLog, r.log)
			_ = out.Begin() // send returns its error
		}
		r.send = func(e entry) error { return out.Send(e.frame) }
		return r.read(ctx)
	})
}

// wantsJSON reports whether a request accepts JSON, and no server-sent events.
func wantsJSON(req *http.Request) bool {
	return !acceptsStream(req) && strings.Contains(strings.ToLower(strings.Join(req.Header.Values("Accept"), ",")), "application/json")
}

// eventPage answers with a page of a thread's events.
func eventPage(w http.ResponseWriter, req *http.Request, c *edge.Caller, single map[string]string, q events.ListEvents) error {
	q.ThreadID = req.PathValue("thread")
	for name, into := range map[string]**int64{"limit": &q.Limit, "toVersion": &q.ToVersion} {
		if single[name] == "" {
			continue
		}
		n, ok := parseWhole(single[name])
		if !ok {
			return events.Invalid("/"+name, "%s must be a whole number from 1", name)
		}
		*into = &n
	}
	raw, err := json.Marshal(q, json.Deterministic(true))
	if err != nil {
		return err
	}
	data, err := decodeObject(raw)
	if err == nil {
		err = setMinSeq(req, data, fieldsOf(q))
	}
	if err != nil {
		return err
	}
	answer, err := c.Client.Query(req.Context(), "event.list", data)
	if err != nil {
		return err
	}
	writeRaw(w, answer)
	return nil
}

// threadChunks sends the chunks of a run.
func (s *service) threadChunks(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	single, _, err := texts(req, chunkParameters())
	if err != nil {
		return err
	}
	next, _, err := position(req, nil)
	if err != nil {
		return err
	}
	log, err := namedLog(req, single)
	if err != nil {
		return err
	}
	thread, err := threadOf(req, c.Client)
	if err != nil {
		return err
	}
	execution := single["execution"]
	if execution != "" {
		if _, err := client.Read(req.Context(), c.Client, events.GetExecution{ThreadID: thread, ExecutionID: execution}); err != nil {
			return unwrapped(err, "")
		}
	}
	after := int64(0)
	if execution == "" {
		var active []events.Execution
		if after, active, err = activeRuns(req.Context(), c.Client, thread); err != nil {
			return err
		}
		if len(active) > 0 {
			execution = active[len(active)-1].ID
		}
	}
	if log, err = checkChunk(req.Context(), c.Client, events.ListChunks{ThreadID: thread, ExecutionID: execution, Log: log}, next); err != nil {
		return err
	}
	w.Header().Set(headerLog, log)
	return stream.Serve(w, req, protocol(), func(ctx context.Context, out *stream.Writer) error {
		if err := out.Begin(); err != nil {
			return err
		}
		if execution == "" {
			if execution = s.nextRun(ctx, c, thread, after); execution == "" {
				return nil
			}
		}
		return sendChunks(out, chunksFrom(ctx, c, thread, execution, next))
	})
}

// activeRuns returns a version of a thread, and the runs that began before it and are active.
func activeRuns(ctx context.Context, c *client.Client, thread string) (version int64, active []events.Execution, err error) {
	now, err := c.UpToDate(ctx)
	if err != nil {
		return 0, nil, err
	}
	doc, err := client.Read(ctx, now, events.GetThread{ThreadID: thread})
	if err != nil {
		return 0, nil, err
	}
	list, err := client.Read(ctx, now, events.ListExecutions{ThreadID: thread, Status: events.Executing})
	if err != nil {
		return 0, nil, err
	}
	return doc.Version, list.Executions, nil
}

// errFound ends a reader that has found what it looked for.
var errFound = errors.New("found")

// nextRun waits for the first run that begins after a version of a thread. It returns "" if
// there will be none.
func (s *service) nextRun(ctx context.Context, c *edge.Caller, thread string, after int64) (execution string) {
	r := reader{
		feeds: s.feeds, client: c.Client, scope: scopeOf(c.Principal), thread: thread, types: []string{string(events.ExecutionCreatedType)}, seen: after, ready: func() {},
		send: func(e entry) error {
			execution = subjectOf(e.data)
			return errFound
		},
	}
	_ = r.read(ctx) // then there is none
	return execution
}

// subjectOf returns the subject of a CloudEvent.
func subjectOf(data []byte) string {
	var e struct {
		Subject string `json:"subject"`
	}
	_ = json.Unmarshal(data, &e) // the log holds nothing else
	return e.Subject
}

// chunksFrom returns the chunks of a run from an index on. A client's own end with the last chunk
// even if its reader has seen it: the reader of a stream counts on none twice.
func chunksFrom(ctx context.Context, c *edge.Caller, thread, execution string, from int64) iter.Seq2[client.Chunk, error] {
	return func(yield func(client.Chunk, error) bool) {
		for chunk, err := range c.Client.Chunks(ctx, thread, execution, client.FromChunk(from)) {
			if err == nil && chunk.Index < from {
				continue
			}
			if chunk.Type == events.ChunkFinish {
				showEnd(ctx, c, thread)
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// showEnd is called before the finish of a run is sent, which is written after its last commit: what the
// client reads next is to show that.
func showEnd(ctx context.Context, c *edge.Caller, thread string) {
	if end, err := c.Client.HistoryEnd(ctx); err == nil {
		c.Acknowledged(thread, end)
	}
}

// sendChunks sends chunks, to the last one.
func sendChunks(out *stream.Writer, chunks iter.Seq2[client.Chunk, error]) error {
	for chunk, err := range chunks {
		var gap *client.ChunkGapError
		switch {
		case errors.As(err, &gap):
			err = sendJSON(out, "", "gap", chunkGap{gap.ExecutionID, gap.From, gap.To})
		case err == nil:
			err = sendJSON(out, strconv.FormatInt(chunk.Index, 10), "", chunk.ChunkEmitted)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chunkGap tells of chunks that are no longer stored.
type chunkGap struct {
	ExecutionID string `json:"executionId"`
	From        int64  `json:"from"`
	To          int64  `json:"to"`
}

// tenantEvents sends the events of a tenant.
func (s *service) tenantEvents(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	single, types, err := texts(req, tenantParameters())
	if err != nil {
		return err
	}
	seen, given, err := tenantPosition(req, single)
	if err != nil {
		return err
	}
	end, err := client.Read(req.Context(), c.Client, events.GetHistory{})
	if err == nil {
		err = end.CheckPosition(seen.Log, seen.Seq)
	}
	if err != nil {
		return err
	}
	o := client.SubscribeOptions{From: client.Now(), Aggregates: true}
	if given {
		o.From = client.After(seen)
	}
	return stream.Serve(w, req, stream.Protocol{}, func(ctx context.Context, out *stream.Writer) error {
		timeline, err := c.Client.Timeline(ctx, o)
		if err != nil {
			return err
		}
		defer timeline.Close()
		w.Header().Set(headerLog, timeline.Log())
		if err := out.Begin(); err != nil {
			return err
		}
		return sendTenant(ctx, out, c, timeline, types)
	})
}

// sendTenant sends the events of a timeline.
func sendTenant(ctx context.Context, out *stream.Writer, c *edge.Caller, timeline *client.Timeline, types []string) error {
	wanted := reader{types: types}
	for e, err := range timeline.All(ctx) {
		if err != nil {
			if errors.As(err, new(*events.BrokenError)) {
				continue
			}
			return err
		}
		if wanted.wants(string(e.Type)) {
			err = out.Send(stream.Frame{ID: timeline.Position(e).String(), Name: string(e.Type), Data: e.Raw()})
		} else {
			err = c.Weigh(ctx, len(e.Raw()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
