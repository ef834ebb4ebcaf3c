package edge

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// ApprovalOf returns the latest request for the approval of a call, nil if there is none.
func ApprovalOf(list []events.CallApproval, call string) *events.CallApproval {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].CallID == call {
			return &list[i]
		}
	}
	return nil
}

// AwaitsPeople reports whether an execution waits for people only.
func AwaitsPeople(x *events.Execution) bool {
	return len(x.Waiting) > 0 && len(x.WaitingFor) == 0 && !slices.ContainsFunc(x.Waiting, func(call string) bool {
		a := ApprovalOf(x.Approvals, call)
		return a == nil || a.Status != events.ApprovalWaiting
	})
}
