package agui

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// resume answers the interrupts of a run, and returns what follows.
func (t *conversation) resume(ctx context.Context, in *input, o once) (*follow, error) {
	x, thread, err := t.interrupted(ctx, in.Resume)
	if err != nil {
		return nil, err
	}
	answers, err := in.answersTo(x)
	if err != nil {
		return nil, err
	}
	if err := t.nothingElse(ctx, in, thread); err != nil {
		return nil, err
	}
	f, err := t.follow(ctx, x)
	if err != nil {
		return nil, err
	}
	var commands []events.SubCommand
	settled := false
	for _, d := range answers {
		f.after = append(f.after, d.CallID)
		if runview.ApprovalOf(x.Approvals, d.CallID).Status != events.ApprovalWaiting {
			settled = true
			continue
		}
		one, err := client.Sub("approval.resolve", d)
		if err != nil {
			return nil, err
		}
		commands = append(commands, one)
	}
	if rest := slices.DeleteFunc(waiting(x), func(id string) bool { return slices.Contains(f.after, id) }); len(rest) > 0 && len(commands) > 0 {
		return nil, events.Invalid("/resume", "the run waits for more answers, and needs all in one request: %s", strings.Join(rest, ", "))
	}
	if settled {
		repeats, err := t.checkSettled(ctx, in, o, x, answers, f.from)
		if err != nil || repeats {
			return f, err
		}
	}
	if commands, err = t.addState(ctx, commands, x.ThreadID, in.State); err != nil || len(commands) == 0 {
		return f, err
	}
	reply, err := t.now.Commit(ctx, x.ThreadID, commands, client.CommandID(o.command()))
	switch {
	case events.IsReusedID(err):
		return nil, edge.ReusedKey(o.name)
	case err != nil:
		return nil, resumeRefused(err)
	}
	t.now = t.now.WithMinSeq(reply.Seq)
	return f, nil
}

// answersTo returns the answers of a request to the calls of a run.
func (in *input) answersTo(x *events.Execution) (list []events.ResolveApproval, err error) {
	for i, r := range in.Resume {
		path := "/resume/" + strconv.Itoa(i)
		a := runview.ApprovalOf(x.Approvals, r.InterruptID)
		if a == nil {
			return nil, events.Invalid(path+"/interruptId", "the run waits for no %.80q, but for: %s", r.InterruptID, strings.Join(waiting(x), ", "))
		}
		d, err := r.resolve(path, a)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(other events.ResolveApproval) bool { return other.CallID == d.CallID }) {
			return nil, events.Invalid(path+"/interruptId", "interrupt %.80q has two answers; send one", a.CallID)
		}
		list = append(list, d)
	}
	return list, nil
}

// checkSettled refuses answers that differ from those which calls were given before. It reports whether
// this request gave them: a repeat of it has its state, or one that changes nothing now.
func (t *conversation) checkSettled(ctx context.Context, in *input, o once, x *events.Execution, answers []events.ResolveApproval, from int64) (repeats bool, err error) {
	given, err := client.AnswersTo(ctx, t.now, x.ThreadID, from)
	if err != nil {
		return false, err
	}
	for i, d := range answers {
		a := runview.ApprovalOf(x.Approvals, d.CallID)
		if a.Status == events.ApprovalWaiting {
			continue
		}
		earlier := given[d.CallID]
		if what := d.Differs(earlier.ResolveApproval); what != "" {
			return false, events.Invalid("/resume/"+strconv.Itoa(i), "interrupt %.80q was answered otherwise: it is %s, and this is %s", a.CallID, a.Status, what)
		}
		repeats = repeats || earlier.CommandID == o.command()
	}
	if !repeats {
		return false, nil
	}
	differs, err := t.stateDiffers(ctx, x.ThreadID, in.State)
	if err != nil || !differs {
		return true, err
	}
	if set, err := t.stateSetBy(ctx, x.ThreadID, from, o.command()); err != nil || events.EqualJSON(set, in.State) {
		return true, err
	}
	return false, edge.ReusedKey(o.name)
}

// stateSetBy returns the state that a command set, nil if it set none.
func (t *conversation) stateSetBy(ctx context.Context, thread string, from int64, command string) (events.JSON, error) {
	for from = max(from, 1); from > 0; {
		page, err := client.Read(ctx, t.now, events.ListEvents{ThreadID: thread, FromVersion: &from, Types: []string{string(events.StateChangedType)}, Limit: new(int64(1000))})
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				return nil, err
			}
			if d, ok := e.Data.(events.StateChanged); ok && e.CommandID == command {
				return d.Content, nil
			}
		}
		from = page.NextVersion
	}
	return nil, nil
}

// nothingElse refuses a request that resumes a run and has a message that the thread does not know.
func (t *conversation) nothingElse(ctx context.Context, in *input, thread *events.Thread) error {
	list, err := t.messages(ctx, thread.ID)
	if err != nil {
		return err
	}
	asked := turnsOf(in.Messages[in.front():])
	p := compare(thread, asked, list)
	at := slices.IndexFunc(p.fresh, func(m message) bool {
		return m.Role == roleTool || m.Role == string(events.User) && p.known < len(asked)
	})
	switch {
	case at < 0:
		return nil
	case p.fresh[at].Role == roleTool:
		return events.Invalid("/messages", "a request that resumes a run has no new result of a tool; send that of call %.80q when the run has gone on", p.fresh[at].ToolCallID)
	}
	return events.Invalid("/messages", "a request that resumes a run has no new message; send it when the run has gone on")
}

// interrupted returns the execution that waits for answers, or has waited for these.
func (t *conversation) interrupted(ctx context.Context, answers []answer) (*events.Execution, *events.Thread, error) {
	branches := slices.Clone(t.branches)
	slices.SortStableFunc(branches, func(a, b *events.Thread) int { return strings.Compare(changed(b), changed(a)) })
	for _, b := range branches {
		list, err := client.Read(ctx, t.now, events.ListExecutions{ThreadID: b.ID, Order: "desc", Limit: new(int64(20))})
		if err != nil {
			return nil, nil, err
		}
		for i := range list.Executions {
			x := &list.Executions[i]
			if slices.ContainsFunc(answers, func(a answer) bool { return runview.ApprovalOf(x.Approvals, a.InterruptID) != nil }) {
				return x, b, nil
			}
		}
	}
	return nil, nil, events.Invalid("/resume/0/interruptId", "no run of thread %.200q waits for %.80q", t.id, answers[0].InterruptID)
}

// resolve returns an answer as a command.
func (r *answer) resolve(path string, a *events.CallApproval) (events.ResolveApproval, error) {
	d := events.ResolveApproval{CallID: a.CallID}
	k := jsontext.Value(r.Payload).Kind()
	given := k != 0 && k != 'n'
	switch {
	case r.Status == "cancelled":
		d.Deny = true
		return d, nil
	case r.Status != "resolved":
		return d, events.Invalid(path+"/status", "a status is resolved or cancelled, and not %.32q", r.Status)
	case a.Reason == events.ApprovalQuestion && given:
		d.Result = r.Payload
		return d, nil
	case a.Reason == events.ApprovalQuestion:
		return d, events.Invalid(path+"/payload", "the payload is the answer to the question, and not null")
	}
	var said struct {
		Approved  *bool       `json:"approved"`
		Arguments events.JSON `json:"arguments"`
		Reason    string      `json:"reason"`
	}
	if json.Unmarshal(r.Payload, &said) != nil || said.Approved == nil {
		return d, events.Invalid(path+"/payload", `the payload is {"approved": true | false, "arguments"?, "reason"?}`)
	}
	d.Grant, d.Deny, d.Reason = *said.Approved, !*said.Approved, said.Reason
	if k = jsontext.Value(said.Arguments).Kind(); k != 0 && k != 'n' {
		if d.Deny {
			return d, events.Invalid(path+"/payload/arguments", "a call that is denied has no arguments")
		}
		d.Arguments = said.Arguments
	}
	return d, nil
}

// resumeRefused returns the refusal of answers with a path of the request.
func resumeRefused(err error) error {
	e := *events.AsError(err)
	if e.Details == nil || !strings.HasPrefix(e.Details.Path, "/data/commands/") {
		return err
	}
	details := *e.Details
	number, rest, _ := strings.Cut(strings.TrimPrefix(details.Path, "/data/commands/"), "/")
	e.Message, e.Details, details.Command = strings.TrimPrefix(e.Message, details.Path+": "), &details, nil
	_, rest, _ = strings.Cut(rest, "data/")
	details.Path = "/resume/" + number + "/payload"
	if rest, is := strings.CutPrefix(rest, "arguments"); is {
		details.Path += "/arguments" + rest
	} else if rest, is := strings.CutPrefix(rest, "result"); is {
		details.Path += rest
	}
	return &e
}
