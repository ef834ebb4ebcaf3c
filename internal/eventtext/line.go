package eventtext

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Width is how much of a text the line of an event shows.
const Width = 72

// Line describes an event in a few words.
func Line(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		if d.Key != nil {
			return Brief(*d.Key+" "+d.Title, Width)
		}
		return Brief(d.Title, Width)
	case events.ThreadResolved:
		return Brief(d.Key, Width)
	case events.ThreadStatusChanged:
		return move(d.From, d.To, d.Reason)
	case events.RelationshipAdded:
		return Brief(string(d.Type)+" "+string(d.Role)+" of "+ShortID(d.ThreadID)+" "+d.Comment, Width)
	case events.RelationshipRemoved:
		return string(d.Type) + " " + string(d.Role) + " of " + ShortID(d.ThreadID)
	case events.SubthreadAdded:
		return ShortID(d.ThreadID)
	case events.ThreadFinished:
		return string(d.Status) + " " + ShortID(d.ExecutionID)
	case events.ContextStatusChanged:
		return move(d.From, d.To, "")
	case events.ItemCreated:
		return Who(d.Type, d.Role) + ": " + Brief(Said(d.Type, d.Content), Width)
	case events.ItemStatusChanged:
		return ShortID(e.Subject) + " " + move(d.From, d.To, "")
	case events.MessageEdited:
		return ShortID(e.Subject) + " " + Brief(Said(events.Message, d.Content), Width)
	case events.ExecutionCreated:
		return ShortID(d.ID) + " answers " + ShortID(d.TriggerItemID)
	case events.ExecutionStatusChanged:
		return move(d.From, d.To, d.ErrorText)
	case events.StepCreated:
		return fmt.Sprintf("iteration %d", d.Iteration)
	case events.StepStatusChanged:
		return move(d.From, d.To, d.ErrorText)
	case events.PartCreated:
		return d.Type
	case events.PartUpdated:
		return d.Type + state(d.Part)
	case events.ChunkEmitted:
		return Brief(fmt.Sprintf("%d %s %s", d.Index, d.Type, d.Data), Width)
	case events.ProfileChanged:
		if d.Title != nil {
			return Brief("title: "+*d.Title, Width)
		}
		return ""
	case events.KeyClaimed:
		return Brief(d.Key, Width)
	case events.KeyReleased:
		return Brief(d.Key, Width)
	case events.WriterClaimed:
		return Brief(d.Holder+" until "+d.Until, Width)
	case events.WriterRenewed:
		return "until " + d.Until
	case events.WriterReleased:
		return Brief(d.Holder, Width)
	case events.SessionCompleted:
		return Brief(string(d.Outcome)+" "+d.ErrorText, Width)
	case events.CommandRejected:
		return Brief(d.Command+": "+string(d.Code)+": "+d.Message, Width)
	case events.Unknown:
		return "(" + d.Reason + ")"
	default:
		return happenedInRun(e)
	}
}

func move[S ~string](from, to S, why string) string {
	return strings.TrimSpace(string(from) + " → " + string(to) + " " + Brief(why, Width))
}

// state returns the state of a part, or "".
func state(part []byte) string {
	var p struct {
		State string `json:"state"`
	}
	_ = json.Unmarshal(part, &p) // a part may be any JSON
	if p.State == "" {
		return ""
	}
	return " " + Brief(p.State, 32)
}

// happenedInRun describes an event of a run in a few words.
func happenedInRun(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.RunRequested:
		return ShortID(e.Subject) + " by " + Brief(d.AgentID, Width)
	case events.RunClaimed:
		return fmt.Sprintf("%s by %s, claim %d", ShortID(e.Subject), Brief(d.Worker, 32), d.Token)
	case events.RunParked:
		return ShortID(e.Subject) + " waits for " + Brief(strings.Join(d.Calls, ", "), Width)
	case events.RunSuspended:
		return Brief(strings.Join(d.Calls, ", "), Width)
	case events.RunResumed:
		return Brief(strings.Join(d.Calls, ", "), Width)
	case events.RunStopped:
		if d.Abort {
			return Brief("aborted "+d.Reason, Width)
		}
		return Brief(d.Reason, Width)
	case events.RunAwaited:
		var names []string
		for _, w := range d.For {
			names = append(names, w.Name)
		}
		if len(names) == 0 {
			return "for nothing any more"
		}
		return Brief("for a worker of "+strings.Join(names, ", "), Width)
	case events.RunTurned:
		return "side " + string(d.Side)
	case events.RunLimited:
		switch {
		case d.Rights == nil || d.Rights.None:
			return "to its own thread"
		case d.Rights.User != "":
			return Brief("to threads of "+d.Rights.User, Width)
		}
		return Brief("to "+strings.Join(d.Rights.Threads, ", "), Width)
	case events.ApprovalRequested:
		return Brief(d.CallID+" of "+d.Name+" "+string(d.Arguments), Width)
	case events.ApprovalGranted:
		return Brief(d.CallID+" "+d.Comment, Width)
	case events.ApprovalResolved:
		return Brief(d.CallID+" "+string(d.Result), Width)
	case events.ApprovalDenied:
		return Brief(d.CallID+" "+d.Comment, Width)
	case events.AgentAssigned:
		return Brief(d.From+" → "+d.AgentID+" "+d.Reason, Width)
	case events.QueuePushed:
		return Brief(d.ID, Width)
	case events.QueueDrained:
		return Brief(strings.Join(d.IDs, ", "), Width)
	case events.QueueRemoved:
		return Brief(d.ID, Width)
	case events.QueueEdited:
		return Brief(d.ID, Width)
	case events.QueueMoved:
		if d.Before == "" {
			return Brief(d.ID+" to the end", Width)
		}
		return Brief(d.ID+" before "+d.Before, Width)
	case events.TraceRecorded:
		return Brief(strings.TrimSpace(string(d.Kind)+" "+d.Name+" "+d.Level+" "+d.Text), Width)
	default:
		return happenedOutside(e)
	}
}
