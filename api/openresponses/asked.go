package openresponses

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// Asked is a request of another protocol of OpenAI's, told as a request for a response. It has the
// models, tools, bounds, retries and temporary threads of this protocol.
type Asked struct {
	Body  events.JSON      // of POST /v1/responses, without input; with store: false the thread is temporary
	Input []transform.Item // its items, which are valid
	Stop  []string         // sequences that end the answer
	Sent  []byte           // the body that the client sent, by which its repeats are known
	Scope string           // of its Idempotency-Keys
	// Threads returns those that may have the run of an earlier request with the same Idempotency-Key, if
	// not only the one that it has begun.
	Threads func(context.Context, *client.Client) ([]string, error)
	Key     string // of the thread that is created; empty: it has none, or the body names a conversation
	Version *int64 // that the conversation must have, else Begin returns a version_conflict
}

// Run is the run of a request of another protocol.
type Run struct {
	b    *begun
	stop func()
}

// Shown is something new of a run's answer: one of its fields is set.
type Shown struct {
	Text, Refusal, Reasoning string
}

// Answer is the outcome of a run: it has ended, or waits for people.
type Answer struct {
	Status  string // completed, incomplete, failed, cancelled
	Reason  string // of incomplete
	Failure *edge.Problem
	Output  []transform.Item // without calls, if the run waits for people
	Usage   *events.Usage
	Created int64
	Waiting []events.CallApproval // what people are asked, if the run waits for them
}

// The states of an Answer.
const (
	Failed    = failedStatus
	Cancelled = cancelledStatus
)

// Refusals returns a handler whose refusals are told as OpenAI's clients expect them.
func Refusals(h edge.Handler) edge.Handler { return told(h) }

// Says reports whether there is something in an item to show to a model.
func Says(o transform.Item) bool {
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var parts []part
	switch {
	case o.Type != messageItem && o.Type != "":
		return true
	case json.Unmarshal(o.Content, &parts) != nil:
		return textOf(o.Content) != ""
	}
	return slices.ContainsFunc(parts, func(p part) bool { return p.Type != events.InputText || p.Text != "" })
}

// request returns a as a request for a response, with its Idempotency-Key.
func (a *Asked) request(r *http.Request) (d *createRequest, key string, err error) {
	if d, err = decodeCreate(a.Body); err != nil {
		return nil, "", err
	}
	d.foreign, d.threadKey, d.version, d.input, d.stop, d.size = true, a.Key, a.Version, a.Input, a.Stop, len(a.Sent)
	key = a.key(r)
	if d.retry = retryOf(r); key != "" || d.retry.told {
		d.digest = edge.DigestOf(a.Sent)
	}
	return d, key, nil
}

// key returns the request's Idempotency-Key in its scope, "" if it has none.
func (a *Asked) key(r *http.Request) string {
	key := r.Header.Get(edge.HeaderKey)
	if key != "" {
		key = a.Scope + "\x00" + key
	}
	return key
}

// Once returns the id for the request's Idempotency-Key, "" if it has none.
func (a *Asked) Once(r *http.Request, c *edge.Caller) string {
	key := a.key(r)
	if key == "" {
		return ""
	}
	return c.Keyed(key).String()
}

// Check refuses a request that no run would answer, before anything is written.
func (a *Asked) Check(r *http.Request, c *edge.Caller) error {
	d, _, err := a.request(r)
	if err != nil {
		return err
	}
	if err := known(r.Context(), c, d.Model); err != nil {
		return err
	}
	if err := d.checkNames(r.Context(), c); err != nil {
		return err
	}
	return d.checkChoice(r.Context(), c)
}

// Earlier returns the run that an earlier request with the same Idempotency-Key began, or an earlier
// attempt of the same client at the request; nil if there is none. Close it.
func (a *Asked) Earlier(r *http.Request, c *edge.Caller) (*Run, error) {
	d, key, err := a.request(r)
	if err != nil {
		return nil, err
	}
	var b *begun
	switch {
	case key != "":
		b, err = repeated(r.Context(), c, d, basis{}, c.Keyed(key), a.Threads)
	case d.retry.within > 0:
		b, err = d.retry.first(r.Context(), c, d, basis{})
	}
	if b == nil || err != nil {
		return nil, err
	}
	return newRun(r, b), nil
}

// Begin starts the run of the request, which Check has let pass and of which Earlier has found no run.
// Close it. If another request with the same Idempotency-Key has begun one since, the error may be an
// already_exists.
func (a *Asked) Begin(r *http.Request, c *edge.Caller) (*Run, error) {
	d, key, err := a.request(r)
	if err != nil {
		return nil, err
	}
	b, err := begin(r.Context(), c, d, key, noTemporary)
	if err != nil {
		return nil, err
	}
	return newRun(r, b), nil
}

func newRun(r *http.Request, b *begun) *Run {
	run := &Run{b, func() {}}
	if t := b.temporary; t != nil {
		t.holds = true
		stop := t.keep(r.Context())
		run.stop = func() {
			stop()
			go t.discard(context.WithoutCancel(r.Context()))
		}
	}
	return run
}

// Close ends the reading of the run, which goes on by itself. A temporary thread is purged when its
// run has ended.
func (run *Run) Close() { run.stop() }

// Thread returns the id of the run's thread.
func (run *Run) Thread() string { return run.b.thread }

// Execution returns the id of the run.
func (run *Run) Execution() string { return run.b.exec }

// Wait blocks until the run has ended or waits for people, and returns what it came to.
func (run *Run) Wait(ctx context.Context) (*Answer, error) {
	l, err := run.b.shown(ctx)
	if err != nil {
		return nil, run.b.kept(err)
	}
	res, err := resourceOf(ctx, run.b.client, l, false)
	if err != nil {
		return nil, run.b.kept(err)
	}
	return run.answer(l.x, res), nil
}

// Follow calls show with every new text of the answer, in order, until the run has ended or waits for
// people. What a model says again when it is asked again is not shown again. Calls are in the Answer
// only: one that a model has begun to write may never be made.
func (run *Run) Follow(ctx context.Context, show func(Shown) error) (*Answer, error) {
	x, err := run.b.execution(ctx)
	if err != nil {
		return nil, run.b.kept(err)
	}
	var last *resource
	end, err := follow(ctx, run.b.client, leg{x: x, n: run.b.leg, live: run.b.live}, onlyNews, sink{send: func(v streamEvent) error {
		switch v.Type {
		case "response.output_text.delta":
			return show(Shown{Text: *v.Delta})
		case "response.refusal.delta":
			return show(Shown{Refusal: *v.Delta})
		case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
			return show(Shown{Reasoning: *v.Delta})
		}
		if ends(v.Type) {
			last = v.Response
		}
		return nil
	}})
	if err != nil {
		return nil, run.b.kept(err)
	}
	return run.answer(end.x, last), nil
}

// calls reports whether an item is a call of a tool of the caller. A question to a person is told as
// one to clients of Open Responses.
func (run *Run) calls(o *transform.Item) bool {
	return o.Type == callItem && run.b.settings != nil &&
		slices.ContainsFunc(run.b.settings.Tools, func(t events.CallerTool) bool { return t.Name == o.Name })
}

// answer returns the outcome of a run: its execution, nil if it has none, and its response.
func (run *Run) answer(x *events.Execution, res *resource) *Answer {
	a := &Answer{Status: res.Status, Created: res.CreatedAt}
	if res.IncompleteDetails != nil {
		a.Reason = res.IncompleteDetails.Reason
	}
	if a.Reason == cancelledReason {
		a.Status = Cancelled
	}
	if e := res.Error; e != nil {
		a.Failure = &edge.Problem{Type: e.Type, Code: e.Code, Message: e.Message}
	}
	for i := range res.Output {
		if o := &res.Output[i]; o.Type != callItem || run.calls(o) {
			a.Output = append(a.Output, *o)
		}
	}
	if x != nil {
		a.Usage = x.Usage
		if !x.Finished {
			a.Waiting = x.WaitingApprovals()
		}
	}
	if t := run.b.temporary; t != nil {
		t.waited = len(a.Waiting) > 0
	}
	if len(a.Waiting) > 0 { // results that came now would be refused
		a.Output = slices.DeleteFunc(a.Output, func(o transform.Item) bool { return o.Type == callItem })
	}
	return a
}

// Pieces returns a stored item as items of Open Responses, without what the server called. Files are
// referred to as the item does.
func Pieces(i *events.Item) []transform.Item {
	stored := *i
	stored.ThreadID = ""
	return piecesOf(&stored, false)
}
