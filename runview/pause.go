package runview

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// Pause is a place where a run waits for people: calls of a step that wait for them at one time.
type Pause struct {
	StepID string
	Calls  []events.CallApproval
}

// Pauses returns the pauses of a run, in order. A pause whose requests the end of the run has
// withdrawn does not count.
func Pauses(x *events.Execution) []Pause {
	var list []Pause
	for _, a := range x.Approvals {
		if a.StepID == "" { // of an old log
			continue
		}
		last := len(list) - 1
		if last < 0 || list[last].StepID != a.StepID || list[last].over(a.RequestedAt) {
			list = append(list, Pause{StepID: a.StepID})
			last++
		}
		list[last].Calls = append(list[last].Calls, a)
	}
	ended := slices.IndexFunc(list, func(p Pause) bool { return p.has(events.ApprovalWithdrawn) })
	if ended >= 0 {
		return list[:ended]
	}
	return list
}

// over reports whether all calls of the pause were answered when another one came to wait: calls to
// be approved are asked about with the model's answer, and questions after that.
func (p *Pause) over(then string) bool {
	return p.Answered() && p.Calls[0].RequestedAt != then && p.AnsweredAt() <= then
}

// has reports whether a call of the pause has a status.
func (p *Pause) has(status events.ApprovalStatus) bool {
	return slices.ContainsFunc(p.Calls, func(a events.CallApproval) bool { return a.Status == status })
}

// Answered reports whether people have answered all that they were asked.
func (p *Pause) Answered() bool { return !p.has(events.ApprovalWaiting) }

// AnsweredAt returns when the last answer came.
func (p *Pause) AnsweredAt() string {
	last := ""
	for _, a := range p.Calls {
		last = max(last, a.AnsweredAt)
	}
	return last
}

// Approves reports whether people are asked to approve a call, and not only for answers.
func (p *Pause) Approves() bool {
	return slices.ContainsFunc(p.Calls, func(a events.CallApproval) bool { return a.Reason != events.ApprovalQuestion })
}

// Asks reports whether the pause asks about a call. A nil pause asks about none.
func (p *Pause) Asks(call string) bool { return p.of(call) != nil }

// Questions reports whether the pause asks a person for the answer to a call.
func (p *Pause) Questions(call string) bool {
	a := p.of(call)
	return a != nil && a.Reason == events.ApprovalQuestion
}

func (p *Pause) of(call string) *events.CallApproval {
	if p == nil {
		return nil
	}
	return ApprovalOf(p.Calls, call)
}

// ApprovalOf returns the latest request for the approval of a call, nil if there is none.
func ApprovalOf(list []events.CallApproval, call string) *events.CallApproval {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].CallID == call {
			return &list[i]
		}
	}
	return nil
}

// Prompt returns what a person is asked, as a text.
func Prompt(a *events.CallApproval) string {
	switch a.Reason {
	case events.ApprovalQuestion:
		return a.Question
	case events.ApprovalMayHaveRun:
		return "A worker that was lost may have made the call of " + a.Name + ". Make it again?"
	}
	return "The call of " + a.Name + " needs an approval."
}

// AwaitsPeople reports whether an execution waits for people only.
func AwaitsPeople(x *events.Execution) bool {
	return awaitsPeople(x.Waiting, len(x.WaitingFor) > 0, func(call string) bool {
		a := ApprovalOf(x.Approvals, call)
		return a != nil && a.Status == events.ApprovalWaiting
	})
}

// awaitsPeople reports whether a run that is parked waits for people only. more says whether it also
// waits for something else, and asked whether a person was asked about a call.
func awaitsPeople(calls []string, more bool, asked func(call string) bool) bool {
	return len(calls) > 0 && !more && !slices.ContainsFunc(calls, func(call string) bool { return !asked(call) })
}
