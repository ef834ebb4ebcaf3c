package main

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// textWidth is how much of a text the line of an event shows.
const textWidth = 72

// happened describes an event in a few words.
func happened(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		if d.Key != nil {
			return brief(*d.Key+" "+d.Title, textWidth)
		}
		return brief(d.Title, textWidth)
	case events.ThreadResolved:
		return brief(d.Key, textWidth)
	case events.ThreadStatusChanged:
		return move(d.From, d.To, d.Reason)
	case events.SubthreadAdded:
		return shortID(d.ThreadID)
	case events.ThreadFinished:
		return string(d.Status) + " " + shortID(d.ExecutionID)
	case events.ContextStatusChanged:
		return move(d.From, d.To, "")
	case events.ItemCreated:
		return who(d.Type, d.Role) + ": " + brief(said(d.Type, d.Content), textWidth)
	case events.ItemStatusChanged:
		return shortID(e.Subject) + " " + move(d.From, d.To, "")
	case events.MessageEdited:
		return shortID(e.Subject) + " " + brief(said(events.Message, d.Content), textWidth)
	case events.ExecutionCreated:
		return shortID(d.ID) + " answers " + shortID(d.TriggerItemID)
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
		return brief(fmt.Sprintf("%d %s %s", d.Index, d.Type, d.Data), textWidth)
	case events.ProfileChanged:
		if d.Title != nil {
			return brief("title: "+*d.Title, textWidth)
		}
		return ""
	case events.KeyClaimed:
		return brief(d.Key, textWidth)
	case events.KeyReleased:
		return brief(d.Key, textWidth)
	case events.WriterClaimed:
		return brief(d.Holder+" until "+d.Until, textWidth)
	case events.WriterRenewed:
		return "until " + d.Until
	case events.WriterReleased:
		return brief(d.Holder, textWidth)
	case events.SessionCompleted:
		return brief(string(d.Outcome)+" "+d.ErrorText, textWidth)
	case events.CommandRejected:
		return brief(d.Command+": "+string(d.Code)+": "+d.Message, textWidth)
	case events.Unknown:
		return "(" + d.Reason + ")"
	default:
		return happenedInRun(e)
	}
}

func move[S ~string](from, to S, why string) string {
	return strings.TrimSpace(string(from) + " → " + string(to) + " " + brief(why, textWidth))
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
	return " " + brief(p.State, 32)
}

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
