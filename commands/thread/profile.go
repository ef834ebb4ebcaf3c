package thread

import (
	"maps"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
)

// profile holds the settings of a thread that its runs follow.
type profile struct {
	Draft  string `json:"draft,omitzero"`  // an unsent message
	Submit bool   `json:"submit,omitzero"` // it is sent when a run has ended
	Mode   string `json:"mode,omitzero"`   // picks the agent
}

// size returns the memory of the profile's texts.
func (p profile) size() int64 { return textSize(p.Draft) + textSize(p.Mode) }

// submits reports whether a draft is to be sent when a run has ended.
func (p profile) submits() bool { return p.Submit && strings.TrimSpace(p.Draft) != "" }

func (s *State) evolveProfile(d events.ProfileChanged) {
	p := &s.head.Profile
	for _, f := range []struct{ to, from *string }{{&p.Draft, d.Draft}, {&p.Mode, d.AgentMode}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if d.AutoSubmitDraft != nil {
		p.Submit = *d.AutoSubmitDraft
	}
}

// agentFor returns the agent of a run: the one that is named, or else that of the thread's
// mode, or else the one in charge. A tenant without a policy of modes has no agents of modes.
func (m *maker) agentFor(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	agent, err := m.command.AgentOf(m.state.Profile.Mode, m.state.Agent)
	if err == nil && agent == "" {
		err = events.Invalid("/agentId", "the thread has no agent; name one, or assign one with agent.assign")
	}
	return agent, err
}

// AgentOf returns the agent that answers in a mode: the given one if there is no mode, or if
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

// submitDraft sends the thread's draft at the end of a run, if it is to be sent by itself and
// nothing waits. The thread has one answer to each message, and so the draft is no draft any
// more: it and its flag are cleared. It is part of the end of a run, so it must not fail: a
// draft that no agent can answer, or no context takes, stays.
func (m *maker) submitDraft(last string) error {
	p := m.state.Profile
	if m.ending || !p.submits() || len(m.state.Queue) > 0 || m.state.Status != events.ThreadOpen {
		return nil
	}
	agent, err := m.command.AgentOf(p.Mode, m.state.Agent)
	if err != nil {
		return nil
	}
	if agent == "" { // the run that has ended was asked for by name
		agent = last
	}
	context, open := m.openContext("")
	if agent == "" || !open {
		return nil
	}
	none, sent := "", false
	m.emit(events.ProfileChangedType, m.command.ThreadID, "", events.ProfileChanged{Draft: &none, AutoSubmitDraft: &sent})
	return m.start(begin{item: events.UserText(p.Draft), context: context, agent: agent})
}
