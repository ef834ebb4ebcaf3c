package openresponses

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runview"
)

// goOn continues a run that waits for people with the answers in the input of a request; nil if the
// request continues none. A repeat continues nothing, and has the same response.
func goOn(ctx context.Context, c *edge.Caller, d *createRequest, on *basis, input []transform.Item, id uuid.UUID, own func(thread string) bool) (*begun, error) {
	for try := 0; ; try++ {
		l, err := waitingLeg(ctx, c, d, on, input, own)
		if err != nil || l == nil {
			return nil, err
		}
		b, err := l.answer(ctx, c, d, input, id)
		if try < beginTries && events.HasCode(err, events.NotFound, events.IllegalTransition) { // somebody else has answered meanwhile
			if *on, err = basisOf(ctx, c, d); err != nil {
				return nil, err
			}
			continue
		}
		return b, err
	}
}

// waitingLeg returns the leg that a request may continue with answers: the leg of
// previous_response_id, of the active run of the conversation, or, without either, of the request
// for an approval that the last item answers. It is nil if there is none.
func waitingLeg(ctx context.Context, c *edge.Caller, d *createRequest, on *basis, input []transform.Item, own func(string) bool) (*leg, error) {
	asked := ""
	if last := len(input) - 1; last >= 0 && input[last].Type == responseItem {
		asked = textOf(input[last].Rest["approval_request_id"])
	}
	switch l := on.leg; {
	case d.warmed != "" || on.client == nil && asked == "":
		return nil, nil
	case d.PreviousResponseID != "" && (l == nil || l.pause() == nil || l.temporary() && !own(l.x.ThreadID)):
		return nil, nil
	case d.PreviousResponseID != "":
		return l, nil
	}
	now, err := on.upToDate(ctx, c)
	if err != nil {
		return nil, err
	}
	thread := ""
	if t := on.thread; t != nil {
		thread = t.ID
		if t.Run != nil {
			x, err := client.Read(ctx, now, events.GetExecution{ThreadID: thread, ExecutionID: t.Run.ExecutionID})
			if err != nil {
				return nil, err
			}
			if l := (leg{x: x, n: len(runview.Pauses(x)) - 1}); runview.AwaitsPeople(x) && l.pause() != nil {
				return &l, nil
			}
		}
	}
	if asked == "" {
		return nil, nil
	}
	item, _ := baseOf(asked)
	x, err := execution(ctx, now, "resp_"+strings.TrimPrefix(item, events.ItemPrefix))
	switch {
	case events.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case thread != "" && x.ThreadID != thread || (leg{x: x}).temporary():
		return nil, nil
	}
	for n := len(runview.Pauses(x)) - 1; n >= 0; n-- {
		if l := (leg{x: x, n: n}); l.asked(asked) != "" {
			return &l, nil
		}
	}
	return nil, nil
}

// temporary reports whether the response of the run is not stored.
func (l leg) temporary() bool {
	e := echoOf(l.x)
	return e != nil && e.Temporary
}

// asked returns the call that a request for an approval with that id asks about, where the leg ends.
func (l leg) asked(id string) string {
	number := numberingOf(l.x.ReactionItemID)
	for _, a := range l.pause().Calls {
		if a.Reason != events.ApprovalQuestion && number.call(requestPrefix, a.CallID) == id {
			return a.CallID
		}
	}
	return ""
}

// answer sends the answers of a request to the calls that the leg ends with.
func (l leg) answer(ctx context.Context, c *edge.Caller, d *createRequest, input []transform.Item, id uuid.UUID) (*begun, error) {
	answers, places, other, err := l.answersIn(d, input)
	if err != nil {
		return nil, err
	}
	p := l.pause()
	switch {
	case len(answers) == 0 && !p.Answered():
		return nil, events.Invalid("/input", "response %s waits for answers, and goes on with nothing else: %s", l.id(), l.open(nil))
	case len(answers) == 0 && (other >= 0 || d.PreviousResponseID == ""): // others have answered
		return nil, nil
	case other >= 0:
		return nil, events.Invalid("/input/"+strconv.Itoa(other), "a request that answers calls which wait has nothing else in its input; send this when response %s has gone on", l.id())
	}
	on, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	var list []events.SubCommand
	var from []string
	var settled []string
	var given map[string]client.GivenAnswer // before
	for i, a := range answers {
		settled = append(settled, a.CallID)
		switch status := runview.ApprovalOf(p.Calls, a.CallID).Status; {
		case status == events.ApprovalWaiting:
			one, err := client.Sub("approval.resolve", a)
			if err != nil {
				return nil, err
			}
			list, from = append(list, one), append(from, places[i])
		default:
			if given == nil {
				if given, err = client.AnswersTo(ctx, on, l.x.ThreadID, 1); err != nil {
					return nil, err
				}
			}
			if what := a.Differs(given[a.CallID].ResolveApproval); what != "" {
				return nil, events.Invalid(places[i], "call %s was answered otherwise: it is %s, and this is %s", clipped(a.CallID), status, what)
			}
		}
	}
	if missing := l.open(settled); missing != "" {
		return nil, events.Invalid("/input", "response %s waits for more answers, and needs all in one request: %s", l.id(), missing)
	}
	b := &begun{
		id: leg{x: l.x, n: l.n + 1}.id(), leg: l.n + 1, exec: l.x.ID, thread: l.x.ThreadID, reaction: l.x.ReactionItemID, request: d, client: c.Client,
		echo: echoOf(l.x), settings: l.x.Settings, repeated: len(list) == 0,
	}
	if b.client = on; len(list) == 0 {
		return b, nil
	}
	reply, err := c.Client.Commit(ctx, l.x.ThreadID, list, client.CommandID("openresponses-answer-"+id.String()+d.digest))
	if err != nil {
		return nil, answerRefused(err, from)
	}
	b.client = c.Client.WithMinSeq(reply.Seq)
	return b, nil
}

// answersIn returns the answers in an input to the calls that the leg ends with, and the path of
// each. other is the place of the first item that is neither an answer nor repeats what was asked;
// -1 if there is none.
func (l leg) answersIn(d *createRequest, input []transform.Item) (answers []events.ResolveApproval, paths []string, other int, err error) {
	other = -1
	replays := d.PreviousResponseID == "" && d.Conversation == nil // what came before is the run's
	for i, o := range input {
		path := "/input/" + strconv.Itoa(i)
		var a events.ResolveApproval
		switch {
		case o.Type == responseItem:
			asked := textOf(o.Rest["approval_request_id"])
			var approve *bool
			if err := misfit(path+"/approve", decode(o.Rest["approve"], &approve)); err != nil {
				return nil, nil, 0, err
			}
			a.CallID = l.asked(asked)
			switch {
			case a.CallID == "" && replays:
				continue
			case a.CallID == "":
				return nil, nil, 0, events.Invalid(path+"/approval_request_id", "response %s has no request %s for an approval; it waits for: %s", l.id(), clipped(asked), l.open(nil))
			case approve == nil:
				return nil, nil, 0, events.Invalid(path+"/approve", "an mcp_approval_response says approve: true or false")
			}
			a.Grant, a.Deny, a.Reason = *approve, !*approve, textOf(o.Rest["reason"])
		case o.Type == callOutputItem && l.pause().Asks(o.CallID) && l.pause().Questions(o.CallID):
			a.CallID = o.CallID
			if o.Status == incompleteStatus {
				a.Deny, a.Reason = true, textOf(o.Output)
			} else if a.Result = o.Output; textOf(o.Output) != "" {
				a.Result = events.FromText(textOf(o.Output))
			}
		case o.Type == requestItem, o.Type == string(events.ItemReference) && strings.HasPrefix(o.ID, requestPrefix):
			continue
		default:
			if !(replays && len(answers) == 0) && other < 0 {
				other = i
			}
			continue
		}
		answers, paths = append(answers, a), append(paths, path)
	}
	return answers, paths, other, nil
}

// open names what the leg waits for besides the calls in settled.
func (l leg) open(settled []string) string {
	number := numberingOf(l.x.ReactionItemID)
	var list []string
	for _, a := range l.pause().Calls {
		switch {
		case a.Status != events.ApprovalWaiting || slices.Contains(settled, a.CallID):
		case a.Reason == events.ApprovalQuestion:
			list = append(list, "a function_call_output for "+clipped(a.CallID))
		default:
			list = append(list, "an mcp_approval_response for "+number.call(requestPrefix, a.CallID))
		}
	}
	return strings.Join(list, ", ")
}

// answerRefused returns the refusal of answers with the path of the one at fault.
func answerRefused(err error, paths []string) error {
	e := *events.AsError(err)
	if !events.HasCode(err, events.InvalidRequest) || e.Details == nil {
		return err
	}
	number, rest, _ := strings.Cut(strings.TrimPrefix(e.Details.Path, "/data/commands/"), "/data")
	n, wrong := strconv.Atoi(number)
	if wrong != nil || n < 0 || n >= len(paths) {
		return err
	}
	details := *e.Details
	e.Message = strings.TrimPrefix(e.Message, details.Path+": ")
	if details.Path, details.Command = paths[n], nil; strings.HasPrefix(rest, "/result") {
		details.Path += "/output"
	}
	e.Details = &details
	return &e
}
