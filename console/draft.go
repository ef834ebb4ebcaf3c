package console

import (
	"strings"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// draft is the thread's unsent message.
type draft struct {
	Text     string
	Auto     bool // it is sent automatically when a run has completed
	HasAgent bool
	viewer
}

func loadDraft(a *page.Ask) (any, error) {
	return &draft{a.Thread.Draft, a.Thread.AutoSubmitDraft, a.Thread.AgentID != "", viewerOf(a)}, nil
}

// changeDraft adds to the thread's draft, changes it, sends it or discards it.
func changeDraft(a *page.Ask) (string, error) {
	text := strings.TrimSpace(a.Form("text"))
	do := a.Form("do")
	if text == "" && do != "discard" {
		return "", events.Invalid("/text", "the draft is empty; write a message, or discard it")
	}
	var err error
	switch do {
	case "add":
		if a.Thread.Draft != "" {
			text = a.Thread.Draft + "\n\n" + text
		}
		_, err = a.Client.Send(a.Context(), a.Thread.ID, events.UpdateThread{Draft: &text})
	case "save":
		_, err = a.Client.Send(a.Context(), a.Thread.ID, events.UpdateThread{Draft: &text, AutoSubmitDraft: new(a.Form("auto") != "")})
	case "discard":
		_, err = a.Client.Send(a.Context(), a.Thread.ID, noDraft())
	case "send":
		err = sendDraft(a, text)
	default:
		err = events.Invalid("/do", "do is %.40q; it takes add, save, send or discard", do)
	}
	return a.ThreadLink(""), err
}

// noDraft is the change that clears the draft.
func noDraft() events.UpdateThread {
	return events.UpdateThread{Draft: new(""), AutoSubmitDraft: new(false)}
}

// sendDraft sends a message and clears the draft, both or neither.
func sendDraft(a *page.Ask, text string) error {
	said, err := client.Sub("thread.react", events.ReactThread{Text: &text})
	if a.Thread.AgentID == "" {
		said, err = client.Sub("item.create", events.CreateItem{Item: events.UserText(text)})
	}
	if err != nil {
		return err
	}
	cleared, err := client.Sub("thread.update", noDraft())
	if err != nil {
		return err
	}
	_, err = a.Client.Commit(a.Context(), a.Thread.ID, []events.SubCommand{said, cleared})
	return err
}
