package runstream

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// From returns the version of a thread from which the events of a run are read that a command has begun,
// of which this is the reply, also to a repeat.
func From(reply *events.Reply) int64 {
	if len(reply.Events) == 0 {
		return max(reply.Version, 1)
	}
	return reply.Events[0].Version
}

// Begin completes an execution that its caller asked for, and knows the ids, agent and settings of, as the
// commit of a reply created it: nothing needs to be read. It reports false if that commit did not, or if
// the service that answered is of a build that does not say when.
func Begin(x *events.Execution, reply *events.Reply) bool {
	if reply.Time == "" || !slices.ContainsFunc(reply.Events, func(e events.EventRef) bool { return e.Type == events.ExecutionCreatedType }) {
		return false
	}
	for _, r := range reply.Results() {
		if r.ExecutionID == x.ID {
			x.ThreadID, x.ContextID, x.TriggerItemID, x.ReactionItemID = reply.ThreadID, r.ContextID, r.ItemID, r.ReactionItemID
			x.Status, x.CreatedAt = events.ExecutionMachine().Initial(), reply.Time
			x.Stamp = events.Stamp{Version: reply.Version, Seq: reply.Seq}
			return true
		}
	}
	return false
}
