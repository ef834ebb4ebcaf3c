package natsagents

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/form"
)

// questionOf returns what a caller is asked.
func questionOf(r events.ApprovalRequested) string {
	if r.Reason == events.ApprovalQuestion {
		return r.Question
	}
	call := r.Name
	if r.Arguments != nil {
		call += " " + string(r.Arguments)
	}
	if r.Reason == events.ApprovalMayHaveRun {
		return "A worker that was lost may have made the call of " + call + ". Make it again? Reply yes or no."
	}
	return "The call of " + call + " needs an approval. Reply yes or no."
}

// decisionOf returns a reply as a command. The error is an invalid_request if it decides nothing.
func decisionOf(r events.ApprovalRequested, said string) (*events.ResolveApproval, error) {
	d := &events.ResolveApproval{CallID: r.CallID}
	if r.Reason == events.ApprovalQuestion {
		d.Result = form.Typed(said, r.Answer)
		return d, nil
	}
	var by struct {
		Grant     bool        `json:"grant"`
		Deny      bool        `json:"deny"`
		Arguments events.JSON `json:"arguments"`
		Reason    string      `json:"reason"`
	}
	if json.Unmarshal([]byte(said), &by) == nil && by.Grant != by.Deny {
		d.Grant, d.Deny, d.Arguments, d.Reason = by.Grant, by.Deny, by.Arguments, by.Reason
		return d, d.Check()
	}
	word := strings.ToLower(strings.Trim(strings.TrimSpace(said), ".!"))
	switch {
	case slices.Contains([]string{"yes", "y", "ok", "allow", "approve", "grant"}, word):
		d.Grant = true
	case slices.Contains([]string{"no", "n", "deny", "reject"}, word):
		d.Deny = true
	default:
		return nil, events.Invalid("", "the reply %.80q is neither yes nor no", said)
	}
	return d, nil
}
