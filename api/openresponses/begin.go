package openresponses

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// begun is a run that a request has started.
type begun struct {
	client   *client.Client // shows the run
	id       string         // of the response
	leg      int            // which of the run it shows
	thread   string
	exec     string
	reaction string
	queued   bool // it waits for another run of its conversation
	request  *createRequest
	echo     *echo
	settings *events.RunSettings

	reply     *events.Reply     // to the commit that asked for it; nil: another request did
	repeated  bool              // an earlier request has started it
	waiting   *events.Execution // of an earlier request, while it is queued
	temporary *temporary        // nil: the response is stored
	live      *runstream.Live   // nil: the run is read by queries
}

// beginTries is how often a thread that changes meanwhile is looked at again.
const beginTries = 8

// begin starts the run of a request. own reports whether a temporary response may be
// continued.
func begin(ctx context.Context, c *edge.Caller, d *createRequest, key string, own func(thread string) bool) (*begun, error) {
	if !d.foreign { // Asked.Check has looked
		if err := known(ctx, c, d.Model); err != nil {
			return nil, err
		}
	}
	if err := checkLength(d.input); err != nil {
		return nil, err
	}
	if len(d.input) == 0 && d.PreviousResponseID == "" && d.Conversation == nil {
		return nil, events.Invalid("/input", "a response needs an input, a previous_response_id or a conversation")
	}
	if len(d.input) > 0 && !slices.ContainsFunc(d.input, Says) {
		return nil, events.Invalid("/input", "the input is empty: there is no text, image or file to answer")
	}
	on, err := basisOf(ctx, c, d)
	if err != nil {
		return nil, err
	}
	id := newID(c, d.digest)
	if d.keyed = key != ""; d.keyed {
		id = c.Keyed(key)
	}
	if !d.foreign { // of another protocol, Asked.Earlier has looked
		switch {
		case key != "":
			if b, err := repeated(ctx, c, d, on, id, nil); b != nil || err != nil {
				return b, err
			}
		case d.retry.within > 0:
			if b, err := d.retry.first(ctx, c, d, on); b != nil || err != nil {
				return b, err
			}
		}
		if b, err := goOn(ctx, c, d, &on, d.input, id, own); b != nil || err != nil {
			return b, err
		}
	}
	if err := d.checkNames(ctx, c); err != nil {
		return nil, err
	}
	if err := d.checkChoice(ctx, c); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		if try > 0 {
			if on, err = basisOf(ctx, c, d); err != nil {
				return nil, err
			}
		}
		b, err := beginOnce(ctx, c, d, on, id, own)
		if key != "" && events.IsTakenByDeleted(err) { // an earlier request made it, and it was purged since
			if d.foreign {
				return nil, events.Errorf(events.NotFound, "the answer to this request has ended, and was not kept; send it with another %s", edge.HeaderKey)
			}
			return nil, noResponse("resp_" + d.number(id, ""))
		}
		if key != "" && !d.foreign && events.HasCode(err, events.AlreadyExists) { // its ids are taken: by another body
			return nil, edge.ReusedKey(edge.HeaderKey)
		}
		if !events.HasCode(err, events.VersionConflict) || try == beginTries || d.version != nil {
			return b, err
		}
	}
}

func beginOnce(ctx context.Context, c *edge.Caller, d *createRequest, on basis, id uuid.UUID, own func(string) bool) (*begun, error) {
	to, err := placeOf(ctx, d, on, own)
	if err != nil {
		return nil, err
	}
	items, err := d.items(ctx, c, to)
	if err != nil {
		return nil, err
	}
	if to.forks != nil {
		key := ""
		if d.keyed { // another request with the key may have gone on there, since its run was looked for
			if b, err := joined(ctx, on.client.WithMinSeq(to.seen), d, id, to.thread); b != nil || err != nil {
				return b, err
			}
			key = d.forkKey(id)
		}
		if to, err = forked(ctx, c, to.forks, to.title, key, id); err != nil {
			return nil, err
		}
		if items, err = d.items(ctx, c, to); err != nil {
			return nil, err
		}
	}
	if len(items) == 0 { // the model is to go on
		items = []events.NewItem{{Type: events.Message, Role: events.System, Silent: true, Content: events.JSON("[]")}}
	}
	b := newBegun(d, d.number(id, to.thread))
	b.thread = to.thread
	b.echo = &echo{
		Model: d.Model, PreviousResponseID: d.PreviousResponseID, Parameters: d.modelParameters, Include: d.Include, Background: d.Background,
		Temporary: !d.stored(), Metadata: d.Metadata, PromptCacheKey: d.PromptCacheKey, User: d.User, Input: []string{}, Request: d.digest,
	}
	if d.Conversation != nil {
		b.echo.Conversation = conversationID(to.thread)
	}
	for i := range items {
		items[i].ID = inputItem(id, i)
		items[i].Metadata = withOwn(items[i].Metadata)
		b.echo.Input = append(b.echo.Input, items[i].ID)
	}
	if b.settings, err = d.settings(b.echo); err != nil {
		return nil, err
	}
	reply, err := b.commit(ctx, c, items, to, id)
	if err != nil {
		b.live.Close()
		return nil, err
	}
	b.thread, b.client = reply.ThreadID, c.Client.WithMinSeq(reply.Seq)
	if b.echo.Temporary {
		b.temporary = &temporary{client: b.client, query: b.query(), purges: []string{purgeOf(id)}, shared: d.digest != ""}
		if d.keyed { // others may have begun it with the same commit
			if err := b.kept(b.temporary.share(ctx, purgeOf(id))); err != nil {
				b.live.Close()
				return nil, err
			}
		}
	}
	for _, r := range reply.Results() {
		b.queued = b.queued || r.QueuedID != ""
	}
	b.reply, b.live = reply, b.live.Begun(reply)
	if b.queued { // what queries tell of it is of a moment that the events do not name
		b.live.Close()
		b.live = nil
	}
	return b, nil
}

// newThread returns the id of the thread that a request begins.
func newThread(id uuid.UUID) string { return "T-" + id.String() }

// number returns the number of the response to a request. For an existing thread of Open Responses
// it names the thread. For a thread of another protocol it does not, since that protocol's clients
// do not read by it.
func (d *createRequest) number(id uuid.UUID, thread string) string {
	number := hex.EncodeToString(id[:])
	if thread != "" && thread != newThread(id) && !d.foreign {
		number = runstream.NumberIn(thread, number)
	}
	return number
}

// inputItem returns the id of an item of a request's input, the same in whichever thread it is.
func inputItem(id uuid.UUID, i int) string {
	number := hex.EncodeToString(id[:])
	return events.ItemPrefix + number[len(number)-runstream.RandomDigits:] + "i" + strconv.Itoa(i)
}

func newBegun(d *createRequest, number string) *begun {
	return &begun{id: "resp_" + number, exec: events.ExecutionPrefix + number, reaction: events.ItemPrefix + number, request: d}
}

// read returns the execution of a response that waits in no queue.
func (b *begun) read(ctx context.Context) (*events.Execution, error) {
	if b.reply != nil {
		if x := b.planned(); runstream.Begin(x, b.reply) {
			return x, nil
		}
	}
	b.live.Close() // its events alone do not tell the rest
	b.live = nil
	return client.Read(ctx, b.client, b.query())
}

// planned returns the execution that a response will have.
func (b *begun) planned() *events.Execution {
	return &events.Execution{ID: b.exec, ThreadID: b.thread, AgentID: b.request.Model, Settings: b.settings, ReactionItemID: b.reaction}
}

// query asks for the execution of a response.
func (b *begun) query() events.GetExecution {
	return events.GetExecution{ThreadID: b.thread, ExecutionID: b.exec}
}

// created returns when a request was accepted.
func created(b *begun) int64 {
	if !b.queued { // otherwise it has no execution yet
		if x, err := b.read(context.Background()); err == nil {
			return unix(x.CreatedAt)
		}
	}
	return time.Now().Unix()
}

// execution returns the execution of a response, or what one that waits will have.
func (b *begun) execution(ctx context.Context) (*events.Execution, error) {
	switch {
	case b.waiting != nil:
		return b.waiting, nil
	case b.queued && runstream.ThreadIn(b.id) != "":
		return queuedIn(ctx, b.client, b.id)
	case b.queued:
		x, blocked, err := begins(ctx, b.client, b.query())
		if blocked != nil {
			return b.planned(), nil
		}
		return x, err
	}
	return b.read(ctx)
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
		thread = newThread(id)
		add("thread.create", events.CreateThread{UserID: c.User, Key: b.request.threadKey})
	}
	if b.echo.Temporary && !to.kept {
		add("effect.schedule", purgeLater(purgeOf(id), nil))
	}
	command := "openresponses-" + id.String() + b.request.digest
	if to.thread != "" {
		err = errors.Join(err, keepFiles(ctx, c.Client, thread, items, "/input"))
	} else if created, wrong := beginFiles(ctx, c.Client, thread, list, command, items, "/input"); created || wrong != nil {
		list, err = nil, errors.Join(err, wrong)
	}
	if err != nil {
		return nil, err
	}
	input := additions{path: "/input"}
	last := len(items) - 1
	if !b.request.generates() {
		last = len(items)
	}
	if list, err = input.add(list, items[:last]); err != nil {
		return nil, err
	}
	if last < len(items) {
		input.begins = append(input.begins, last)
		add("thread.react", events.ReactThread{
			Item: &items[last], AgentID: b.request.Model, Policy: events.Enqueue, ExecutionID: b.exec, ReactionItemID: b.reaction, Settings: b.settings,
		})
	}
	if err != nil {
		return nil, err
	}
	if b.request.generates() && !b.request.Background { // the request waits for the run
		b.live = runstream.Ahead(ctx, c.Client, thread)
	}
	opts := []client.Option{client.CommandID(command)}
	if to.version != nil {
		opts = append(opts, client.ExpectVersion(*to.version))
	}
	reply, err := c.Client.Commit(ctx, thread, list, opts...)
	if err != nil {
		return nil, input.refused(err)
	}
	if to.thread == "" && b.request.digest != "" { // it may be a repeat
		err = c.CheckMade(ctx, reply)
	}
	return reply, err
}

// known refuses a model that is neither an agent nor a model that is defined. On a desk, a
// reactor that is served will do.
func known(ctx context.Context, c *edge.Caller, name string) error {
	if c.Desk {
		if _, err := client.Read(ctx, c.Client, events.GetAgent{Name: name}); err == nil || !events.IsNotFound(err) {
			return err
		}
	}
	_, err := defined(ctx, c, name)
	if events.IsNotFound(err) {
		return noModel(name)
	}
	return err
}

// defined returns the definition of an agent, or else of a model, with that name. It shows at
// least what was defined before the call.
func defined(ctx context.Context, c *edge.Caller, name string) (*events.Definition, error) {
	find := func(from *client.Client) (*events.Definition, error) {
		d, err := from.Definition(ctx, events.AgentKind, name)
		if events.IsNotFound(err) {
			return from.Definition(ctx, events.ModelKind, name)
		}
		return d, err
	}
	d, err := find(c.Client)
	if !events.IsNotFound(err) {
		return d, err
	}
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	return find(upToDate)
}

// NoModel returns the refusal of a model that is not defined.
func NoModel(name string) error { return noModel(name) }

// modelNotFound is the code of a refusal of a model that is not defined.
const modelNotFound = "model_not_found"

// IsNoModel reports whether err says that the model of a request is not defined.
func IsNoModel(err error) bool {
	own := (*refusal)(nil)
	return errors.As(err, &own) && own.Code == modelNotFound
}

func noModel(name string) error {
	return &refusal{edge.Problem{
		Type: "invalid_request", Code: modelNotFound, Param: "model", Message: "there is no model " + quoted(name) + "; GET /v1/models lists the agents and models that are defined",
	}, http.StatusNotFound}
}

// execution returns the execution of a response, also if it waits in a queue.
func execution(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	number, ok := strings.CutPrefix(id, "resp_")
	if !ok || !events.ValidID(events.ExecutionPrefix+number) {
		return nil, noResponse(id)
	}
	x, err := runstream.Find(ctx, c, id)
	if events.IsNotFound(err) {
		return nil, noResponse(id)
	}
	return x, err
}
