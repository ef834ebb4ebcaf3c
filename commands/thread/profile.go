package thread

import (
	"maps"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
	"github.com/skein-threads/skein/schema"
)

// profile holds the settings of a thread that its runs follow.
type profile struct {
	Draft  string `json:"draft,omitzero"`  // an unsent message
	Submit bool   `json:"submit,omitzero"` // the draft is sent when a run has ended
	Mode   string `json:"mode,omitzero"`   // picks the agent

	Rights *events.Rights `json:"rights,omitzero"` // with which the draft is sent automatically; nil: the tenant's

	Untitled bool   `json:"untitled,omitzero"` // no caller has set a title, and it is not the thread of a call on another thread
	Opening  string `json:"opening,omitzero"`  // of an untitled thread: the title derived from its first message
	First    string `json:"first,omitzero"`    // that message
	Made     bool   `json:"made,omitzero"`     // the title is the beginning of that message, and was not changed since
}

// size returns the memory of the profile's texts.
func (p profile) size() int64 {
	return compact.TextSize(p.Draft) + compact.TextSize(p.Mode) + compact.TextSize(p.Opening) + compact.TextSize(p.First)
}

// submits reports whether a draft is to be sent when a run has ended.
func (p profile) submits() bool { return p.Submit && strings.TrimSpace(p.Draft) != "" }

func (s *State) evolveProfile(d events.ProfileChanged) {
	p := &s.head.Profile
	for _, f := range []struct{ to, from *string }{{&p.Draft, d.Draft}, {&p.Mode, d.AgentMode}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	switch {
	case d.Draft != nil:
		p.Rights = d.Rights
	case d.AutoSubmitDraft != nil:
		p.Rights = p.Rights.Intersect(d.Rights)
	}
	if d.AutoSubmitDraft != nil {
		p.Submit = *d.AutoSubmitDraft
	}
	if d.Title != nil {
		p.Untitled, p.Opening, p.First, p.Made = false, "", "", d.TitleFrom == events.TitleFromMessage
	}
}

// agentFor returns the agent of a run: the named agent, else the agent of the thread's mode, else
// the agent in charge. Modes have no agents if the tenant has no policy of modes.
func (m *decider) agentFor(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	agent, err := m.command.AgentOf(m.state.Profile.Mode, m.state.Agent)
	if err == nil && agent == "" {
		err = events.Invalid("/agentId", "the thread has no agent; name one, or assign one with agent.assign")
	}
	return agent, err
}

// AgentOf returns the agent that answers in a mode. It returns otherwise if mode is empty, or if
// the tenant has no policy of modes.
func (k Known) AgentOf(mode, otherwise string) (string, error) {
	if mode == "" || k.Modes == nil {
		return otherwise, nil
	}
	if agent, ok := k.Modes[mode]; ok {
		return agent, nil
	}
	known := slices.Sorted(maps.Keys(k.Modes))
	const most = 20
	if len(known) > most {
		known = append(known[:most], "...")
	}
	return "", events.Invalid("/agentId", "the thread's agentMode is %.128q, for which the policy %s has no agent (it has: %s); change the mode with thread.update, or name an agent",
		mode, events.ModesPolicy, strings.Join(known, ", "))
}

// submitDraft sends the thread's draft at the end of a run, if its Submit flag is set and the
// queue is empty. It then clears the draft and the flag. It is part of the end of a run, so it
// must not fail: a draft stays if no agent can answer it or no context accepts it.
func (m *decider) submitDraft(last string) error {
	p := m.state.Profile
	if m.ending || !p.submits() || len(m.state.Queue) > 0 || m.state.Status != events.ThreadOpen {
		return nil
	}
	agent, err := m.command.AgentOf(p.Mode, m.state.Agent)
	if err != nil {
		return nil
	}
	if agent == "" { // the run that has ended was for an agent named in its request
		agent = last
	}
	context, open := m.openContext("")
	if agent == "" || !open {
		return nil
	}
	none, sent := "", false
	m.emit(events.ProfileChangedType, m.command.ThreadID, "", events.ProfileChanged{Draft: &none, AutoSubmitDraft: &sent})
	return m.start(begin{item: events.UserText(p.Draft), context: context, agent: agent, rights: p.Rights})
}

// Titles says that a tenant's threads get automatic titles, first the beginning of the first
// message.
type Titles struct {
	Agent string // writes a better title afterwards; empty: no agent does
}

// TitleThread sets the title that an agent has written, if the thread still has the title that
// Skein derived from its first message.
type TitleThread struct{ Title string }

func (m *decider) retitleThread(d TitleThread) error {
	if m.state.Profile.Made {
		m.emit(events.ProfileChangedType, m.command.ThreadID, "", events.ProfileChanged{Title: &d.Title, TitleFrom: events.TitleFromModel})
	}
	return nil
}

// hasTitle reports whether the title was set, or the thread gets no automatic title.
func (p profile) hasTitle() bool { return !p.Untitled }

// wantsTitle reports whether the thread gets a title at the end of a run.
func (p profile) wantsTitle() bool { return p.Untitled && p.Opening != "" }

// evolveOpening records the first message of a user that shows a text. The title of an untitled
// thread is derived from it.
func (s *State) evolveOpening(e *events.Event) {
	p := &s.head.Profile
	if !p.Untitled {
		return
	}
	switch d := e.Data.(type) {
	case events.ItemCreated:
		if p.First == "" && d.Type == events.Message && d.Role == events.User && !d.Silent && d.Depth == 0 {
			s.open(d.ID, d.Content)
		}
	case events.MessageEdited:
		switch {
		case e.Subject != p.First:
		case d.Silent != nil && *d.Silent:
			p.First, p.Opening = "", ""
		case d.Content != nil:
			s.open(p.First, d.Content)
		}
	case events.MessageDeleted, events.HistoryTruncated:
		if i, ok := s.item(p.First); ok && i.Deleted {
			p.First, p.Opening = "", ""
		}
	}
}

// open records a message as the first one, if it shows a text.
func (s *State) open(id string, content events.JSON) {
	p := &s.head.Profile
	p.First, p.Opening = "", ""
	if title := events.TitleOf(events.TextOfParts(content)); title != "" {
		p.First, p.Opening = id, title
	}
}

// titleThread sets the title of an untitled thread to the one derived from its first message. It
// is part of the end of a run; a thread that was given a title meanwhile keeps it.
func (m *decider) titleThread() {
	p := m.state.Profile
	if m.command.Titles == nil || m.ending || !p.wantsTitle() {
		return
	}
	m.emit(events.ProfileChangedType, m.command.ThreadID, "", events.ProfileChanged{Title: &p.Opening, TitleFrom: events.TitleFromMessage})
}

// activateSkill activates a skill of the tenant, as a caller asks.
func (m *decider) activateSkill(d events.ActivateSkill) error {
	if len(d.Arguments) > events.MaxSkillArguments {
		return schema.Under("/arguments", events.TooLarge("the arguments of the skill", int64(len(d.Arguments)), events.MaxSkillArguments))
	}
	if !slices.Contains(m.state.Skills, d.Name) && !m.command.Skills[d.Name] {
		return events.Missing("skill", d.Name)
	}
	m.activate("", d)
	return nil
}

// activate records that a skill is active, unless it is already. execution is the run in which a
// call loaded the skill; it is empty if a caller activated it.
func (m *decider) activate(execution string, d events.ActivateSkill) {
	if !slices.Contains(m.state.Skills, d.Name) {
		m.emit(events.SkillActivatedType, m.command.ThreadID, execution, events.SkillActivated(d))
	}
}
