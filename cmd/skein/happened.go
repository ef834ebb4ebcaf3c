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
