package openresponses

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// begun is a run that a request has started.
type begun struct {
	client   *client.Client // shows the run
	id       string         // of the response
	thread   string
	exec     string
	reaction string
	queued   bool // it waits for another run of its conversation
	request  *createRequest
	echo     *echo
	settings *events.RunSettings

	repeated  bool       // an earlier request has started it
	temporary *temporary // nil: the response is stored
}

// place is where a run is to happen.
type place struct {
	thread  string            // empty: a new one
	version *int64            // that the thread must have
	kept    bool              // it is a temporary thread already
	title   string            // of a thread that is to be forked
	forks   *events.Execution // the thread is forked at this response first
}

// beginTries is how often a thread that changes meanwhile is looked at again.
const beginTries = 8

// begin starts the run of a request. own reports whether a temporary response may be
// continued.
func begin(ctx context.Context, c *edge.Caller, d *createRequest, key string, own func(thread string) bool) (*begun, error) {
	if err := known(ctx, c, d.Model); err != nil {
		return nil, err
	}
	input, err := inputOf(d.Input)
	if err != nil {
		return nil, err
	}
	if len(input) == 0 && d.PreviousResponseID == "" && d.Conversation == nil {
		return nil, events.Invalid("/input", "a response needs an input, a previous_response_id or a conversation")
	}
	id := uuid.Must(uuid.NewV7())
	if key != "" {
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(c.Tenant+"\x00"+c.Subject+"\x00"+key))
		if b, err := repeated(ctx, c, d, id); b != nil || err != nil {
			return b, err
		}
	}
	for try := 0; ; try++ {
		b, err := beginOnce(ctx, c, d, input, id, own)
		if key != "" && errors.Is(err, &events.Error{Code: events.AlreadyExists}) { // its ids are taken: by another body
			return nil, reusedKey()
		}
		if !errors.Is(err, &events.Error{Code: events.VersionConflict}) || try == beginTries {
			return b, err
		}
	}
}

func beginOnce(ctx context.Context, c *edge.Caller, d *createRequest, input []transform.Item, id uuid.UUID, own func(string) bool) (*begun, error) {
	to, err := placeOf(ctx, c, d, own)
	if err != nil {
		return nil, err
	}
	items, err := readInput(ctx, c, input, to)
	if err != nil {
		return nil, err
	}
	if to.forks != nil {
		if to, err = forked(ctx, c, to.forks, to.title, id); err != nil {
			return nil, err
		}
		if items, err = readInput(ctx, c, input, to); err != nil {
			return nil, err
		}
	}
	if len(items) == 0 { // the model is to go on
		items = []events.NewItem{{Type: events.Message, Role: events.System, Silent: true, Content: events.JSON("[]")}}
	}
	b := newBegun(d, id)
	number := hex.EncodeToString(id[:])
	b.thread = to.thread
	b.echo = &echo{
		Model: d.Model, PreviousResponseID: d.PreviousResponseID, Parameters: d.modelParameters, Include: d.Include, Background: d.Background,
		Temporary: !d.stored(), Metadata: d.Metadata, PromptCacheKey: d.PromptCacheKey, User: d.User, Input: []string{}, Request: d.digest,
	}
	if d.Conversation != nil {
		b.echo.Conversation = conversationID(to.thread)
	}
	for i := range items {
		items[i].ID = events.ItemPrefix + number[:24] + "i" + strconv.Itoa(i)
		items[i].Metadata = withOwn(items[i].Metadata)
		b.echo.Input = append(b.echo.Input, items[i].ID)
	}
	if b.settings, err = d.settings(b.echo); err != nil {
		return nil, err
	}
	reply, err := b.commit(ctx, c, items, to, id)
	if err != nil {
		return nil, err
	}
	b.thread, b.client = reply.ThreadID, c.Client.WithMinSeq(reply.Seq)
	if b.echo.Temporary {
		b.temporary = &temporary{client: b.client, query: b.query(), purges: []string{purgeOf(id)}}
	}
	for _, r := range results(reply) {
		b.queued = b.queued || r.QueuedID != ""
	}
	return b, nil
}

func newBegun(d *createRequest, id uuid.UUID) *begun {
	number := hex.EncodeToString(id[:])
	return &begun{id: "resp_" + number, exec: events.ExecutionPrefix + number, reaction: events.ItemPrefix + number, request: d}
}

// repeated returns the run that an earlier request with the same Idempotency-Key has started;
// nil if there is none that has begun. The request must be the same.
func repeated(ctx context.Context, c *edge.Caller, d *createRequest, id uuid.UUID) (*begun, error) {
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	b := newBegun(d, id)
	x, err := execution(ctx, upToDate, b.id)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if b.echo = echoOf(x); b.echo == nil || b.echo.Request != d.digest {
		return nil, reusedKey()
	}
	b.client, b.thread, b.settings, b.repeated = upToDate, x.ThreadID, x.Settings, true
	if b.echo.Temporary {
		b.temporary = &temporary{client: b.client, query: b.query(), purges: []string{purgeOf(id)}}
	}
	return b, nil
}

// reusedKey is the refusal of an Idempotency-Key that another request has used.
func reusedKey() error {
	return &refusal{edge.Problem{
		Type: "invalid_request", Code: "idempotency_key_reused", Param: "Idempotency-Key",
		Message: "another request was made with this Idempotency-Key; send each request with a key of its own",
	}, http.StatusUnprocessableEntity}
}

func results(reply *events.Reply) []events.Result {
	if reply.Result == nil {
		return nil
	}
	return append(reply.Result.Results, *reply.Result)
}

// commit writes the items, and asks the agent, in one commit.
func (b *begun) commit(ctx context.Context, c *edge.Caller, items []events.NewItem, to place, id uuid.UUID) (*events.Reply, error) {
	var list []events.SubCommand
	var err error
	add := func(name string, data any) {
		one, wrong := client.Sub(name, data)
		list, err = append(list, one), errors.Join(err, wrong)
	}
	thread := to.thread
	if thread == "" {
		thread = "T-" + id.String()
		add("thread.create", events.CreateThread{UserID: c.User})
	}
	if b.echo.Temporary && !to.kept {
		add("effect.schedule", purgeLater(purgeOf(id)))
	}
	last := len(items) - 1
	for _, item := range items[:last] {
		add("item.create", events.CreateItem{Item: item})
	}
	add("thread.react", events.ReactThread{
		Item: &items[last], AgentID: b.request.Model, Policy: events.Enqueue, ExecutionID: b.exec, ReactionItemID: b.reaction, Settings: b.settings,
	})
	if err != nil {
		return nil, err
	}
	opts := []client.Option{client.CommandID("openresponses-" + id.String() + b.request.digest)}
	if to.version != nil {
		opts = append(opts, client.ExpectVersion(*to.version))
	}
	reply, err := c.Client.Commit(ctx, thread, list, opts...)
	if err != nil {
		return nil, inputError(err)
	}
	return reply, nil
}

// inputError returns a refusal of the commit without the path in it, which the caller has
// never seen.
func inputError(err error) error {
	e := *events.AsError(err)
	if e.Code != events.InvalidRequest || e.Details == nil {
		return err
	}
	details := *e.Details
	details.Path, details.Command = "/input", nil
	e.Details = &details
	return &e
}

// placeOf returns where the run of a request is to happen. The thread of a previous response
// that is not its last is to be forked.
func placeOf(ctx context.Context, c *edge.Caller, d *createRequest, own func(string) bool) (place, error) {
	switch {
	case d.Conversation != nil:
		t, err := conversationOf(ctx, c, d.Conversation)
		if err != nil {
			return place{}, err
		}
		return place{thread: t.ID}, nil
	case d.PreviousResponseID == "":
		return place{}, nil
	}
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return place{}, err
	}
	x, err := execution(ctx, upToDate, d.PreviousResponseID)
	if err != nil {
		if isMissing(err) {
			return place{}, noPrevious(d.PreviousResponseID)
		}
		return place{}, err
	}
	e := echoOf(x)
	temporary := e != nil && e.Temporary
	if temporary && !own(x.ThreadID) {
		return place{}, noPrevious(d.PreviousResponseID)
	}
	if !x.Finished {
		return place{}, events.Invalid("/previous_response_id", "response %s has not ended; wait for it, or cancel it", clipped(d.PreviousResponseID))
	}
	t, err := upToDate.GetThread(ctx, events.GetThread{ThreadID: x.ThreadID})
	if err != nil {
		return place{}, err
	}
	list, err := upToDate.ListItems(ctx, events.ListItems{ThreadID: x.ThreadID, Order: "desc", Limit: new(int64(1))})
	if err != nil {
		return place{}, err
	}
	last := len(list.Items) == 1 && (list.Items[0].ID == x.ReactionItemID || list.Items[0].ParentItemID == x.ReactionItemID)
	if last && t.Run == nil && temporary == !d.stored() {
		return place{thread: x.ThreadID, version: &t.Version, kept: temporary}, nil
	}
	return place{thread: x.ThreadID, title: t.Title, forks: x}, nil
}

// forked forks the thread of a response at that response.
func forked(ctx context.Context, c *edge.Caller, x *events.Execution, title string, id uuid.UUID) (place, error) {
	reply, err := client.Send(ctx, c.Client, x.ThreadID, events.ForkThread{ItemID: x.ReactionItemID, Title: title}, client.CommandID("openresponses-fork-"+id.String()))
	if err != nil {
		if isMissing(err) {
			return place{}, noPrevious("resp_" + strings.TrimPrefix(x.ID, events.ExecutionPrefix))
		}
		return place{}, err
	}
	if reply.Result == nil || reply.Result.ChildID == "" {
		return place{}, events.Errorf(events.Unavailable, "the fork of thread %s has no id", x.ThreadID)
	}
	c.Client = c.Client.WithMinSeq(reply.Seq)
	return place{thread: reply.Result.ChildID}, nil
}

// readInput converts the input of a request to items for a place, and refuses the results of
// calls that nobody has made.
func readInput(ctx context.Context, c *edge.Caller, input []transform.Item, to place) ([]events.NewItem, error) {
	items, err := newItems(ctx, c, input, to.thread)
	if err != nil {
		return nil, err
	}
	return items, matched(ctx, c, items, to.thread)
}

// newItems converts the input to items of a thread, each with what it refers to.
func newItems(ctx context.Context, c *edge.Caller, input []transform.Item, thread string) ([]events.NewItem, error) {
	list := make([]transform.Item, 0, len(input))
	for i, o := range input {
		if o.Type != string(events.ItemReference) {
			o.ID = ""
			list = append(list, o)
			continue
		}
		of, pieces, err := referred(ctx, c.Client, o.ID)
		if isMissing(err) {
			return nil, events.Invalid("/input/"+strconv.Itoa(i)+"/id", "there is no item %s to refer to", clipped(o.ID))
		}
		if err != nil {
			return nil, err
		}
		if of == thread { // the model sees it already
			continue
		}
		for _, p := range pieces {
			p.ID = ""
			list = append(list, p)
		}
	}
	items, err := transform.Read(list)
	if err != nil {
		e := *events.AsError(err)
		if e.Details != nil {
			details := *e.Details
			details.Path = "/input" + details.Path
			e.Details = &details
		}
		return nil, &e
	}
	return items, nil
}

// referred returns the items that an id refers to, and their thread.
func referred(ctx context.Context, c *client.Client, id string) (thread string, list []transform.Item, err error) {
	base, part := baseOf(id)
	if !events.ValidID(base) {
		return "", nil, events.Missing("item", clipped(id))
	}
	item, err := c.GetItem(ctx, events.GetItem{ItemID: base})
	if err != nil {
		return "", nil, err
	}
	for _, o := range piecesOf(item, true) {
		if !part || o.ID == id {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return "", nil, events.Missing("item", clipped(id))
	}
	return item.ThreadID, list, nil
}

// matched refuses the result of a call that nobody has made.
func matched(ctx context.Context, c *edge.Caller, items []events.NewItem, thread string) error {
	calls := map[string]bool{}
	looked := thread == ""
	for i, item := range items {
		switch item.Type {
		case events.ActionExecute:
			calls[callIDOf(item.Content)] = true
		case events.ActionResult:
			id := callIDOf(item.Content)
			if !calls[id] && !looked {
				looked = true
				if err := callsOf(ctx, c.Client, thread, calls); err != nil {
					return err
				}
			}
			if !calls[id] {
				return events.Invalid("/input/"+strconv.Itoa(i)+"/call_id", "no tool call found for function call output with call_id %s", clipped(id))
			}
		}
	}
	return nil
}

// callsOf adds the calls of a thread that its callers execute.
func callsOf(ctx context.Context, c *client.Client, thread string, calls map[string]bool) error {
	for q := (events.ListItems{ThreadID: thread, Order: "desc", Limit: new(int64(200))}); ; {
		page, err := c.ListItems(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			switch item := &page.Items[i]; {
			case item.Type == events.ActionExecute:
				calls[callIDOf(item.Content)] = true
			case item.Type == events.Message:
				for id := range callersOf(item.Content) {
					calls[id] = true
				}
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}

func callIDOf(content events.JSON) string {
	var of struct {
		CallID string `json:"callId"`
	}
	_ = decode(content, &of) // it was checked when it was read
	return of.CallID
}

// withOwn marks the metadata of an item that a request adds.
func withOwn(metadata events.JSON) events.JSON {
	fields := map[string]events.JSON{}
	if metadata != nil {
		_ = decode(metadata, &fields) // it was made here
	}
	fields[ownItem] = events.JSON("true")
	return marshal(fields)
}

// known refuses a model that is neither an agent nor a model that is defined. On a desk, a
// reactor that is served will do.
func known(ctx context.Context, c *edge.Caller, name string) error {
	if _, err := defined(ctx, c, name); err == nil || !isMissing(err) {
		return err
	}
	if !c.Desk {
		return noModel(name)
	}
	if _, err := c.Client.GetAgent(ctx, events.GetAgent{Name: name}); err != nil {
		if isMissing(err) {
			return noModel(name)
		}
		return err
	}
	return nil
}

// defined returns the definition of an agent, or else of a model, with that name. It shows at
// least what was defined before the call.
func defined(ctx context.Context, c *edge.Caller, name string) (*events.Definition, error) {
	find := func(from *client.Client) (*events.Definition, error) {
		d, err := from.Definition(ctx, events.AgentKind, name)
		if isMissing(err) {
			return from.Definition(ctx, events.ModelKind, name)
		}
		return d, err
	}
	d, err := find(c.Client)
	if !isMissing(err) {
		return d, err
	}
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	return find(upToDate)
}

func noModel(name string) error {
	return &refusal{edge.Problem{
		Type: "invalid_request", Code: "model_not_found", Param: "model", Message: "there is no model " + quoted(name) + "; GET /v1/models lists the agents and models that are defined",
	}, http.StatusNotFound}
}

// execution returns the execution of a response.
func execution(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	number, ok := strings.CutPrefix(id, "resp_")
	if !ok || !events.ValidID(events.ExecutionPrefix+number) {
		return nil, noResponse(id)
	}
	x, err := c.GetExecution(ctx, events.GetExecution{ExecutionID: events.ExecutionPrefix + number})
	if isMissing(err) {
		return nil, noResponse(id)
	}
	return x, err
}
