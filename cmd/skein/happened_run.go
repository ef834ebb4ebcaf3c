package main

import (
	"fmt"
	"strings"

	"github.com/skein-threads/skein/events"
)

// happenedInRun describes an event of a run in a few words.
func happenedInRun(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.RunRequested:
		return shortID(e.Subject) + " by " + brief(d.AgentID, textWidth)
	case events.RunClaimed:
		return fmt.Sprintf("%s by %s, claim %d", shortID(e.Subject), brief(d.Worker, 32), d.Token)
	case events.RunParked:
		return shortID(e.Subject) + " waits for " + brief(strings.Join(d.Calls, ", "), textWidth)
	case events.RunSuspended:
		return brief(strings.Join(d.Calls, ", "), textWidth)
	case events.RunResumed:
		return brief(strings.Join(d.Calls, ", "), textWidth)
	case events.RunStopped:
		if d.Abort {
			return brief("aborted "+d.Reason, textWidth)
		}
		return brief(d.Reason, textWidth)
	case events.RunAwaited:
		var names []string
		for _, w := range d.For {
			names = append(names, w.Name)
		}
		if len(names) == 0 {
			return "for nothing any more"
		}
		return brief("for a worker of "+strings.Join(names, ", "), textWidth)
	case events.RunTurned:
		return "side " + string(d.Side)
	case events.ApprovalRequested:
		return brief(d.CallID+" of "+d.Name+" "+string(d.Arguments), textWidth)
	case events.ApprovalGranted:
		return brief(d.CallID+" "+d.Comment, textWidth)
	case events.ApprovalResolved:
		return brief(d.CallID+" "+string(d.Result), textWidth)
	case events.ApprovalDenied:
		return brief(d.CallID+" "+d.Comment, textWidth)
	case events.AgentAssigned:
		return brief(d.From+" → "+d.AgentID+" "+d.Reason, textWidth)
	case events.QueuePushed:
		return brief(d.ID, textWidth)
	case events.QueueDrained:
		return brief(strings.Join(d.IDs, ", "), textWidth)
	case events.QueueRemoved:
		return brief(d.ID, textWidth)
	case events.QueueEdited:
		return brief(d.ID, textWidth)
	case events.QueueMoved:
		if d.Before == "" {
			return brief(d.ID+" to the end", textWidth)
		}
		return brief(d.ID+" before "+d.Before, textWidth)
	case events.TraceRecorded:
		return brief(strings.TrimSpace(string(d.Kind)+" "+d.Name+" "+d.Level+" "+d.Text), textWidth)
	}
	return ""
}
