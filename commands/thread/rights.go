package thread

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// credential returns the rights of the limited credential that sent the command; nil if a
// credential without limits, server code or this process did.
func (c *Command) credential() *events.Rights {
	if c.Inside || c.Rights == nil || c.Rights.Code {
		return nil
	}
	return c.Rights
}

// limit reduces the rights of a run to those that are also in to.
func (m *decider) limit(execution string, to *events.Rights) {
	x, _ := m.state.execution(execution)
	if x.Run == nil || to == nil {
		return
	}
	if least := x.Run.Rights.Intersect(to); !least.Equal(x.Run.Rights) {
		m.emit(events.RunLimitedType, execution, execution, events.RunLimited{Rights: least})
	}
}

// mayCall refuses a limited credential's call of a tool that the agent of the thread does not
// list.
func (m *decider) mayCall(d events.QueueTool) error {
	if err := m.mayAsk(d.AgentID); err != nil {
		return err
	}
	r := m.command.credential()
	if r.May(events.CanTools) || m.command.Lists[Called{Agent: m.state.working(), Tool: d.Name}] {
		return nil
	}
	return events.Errorf(events.Forbidden, "queue a call of %.100s: the credential is limited, and the thread's agent does not list that tool; list it in the agent's definition, or use a credential that can %s", d.Name, events.CanTools)
}

// mayAsk refuses an agent other than the thread's for a credential that is limited to threads: the
// other one may list what the thread's own does not.
func (m *decider) mayAsk(agent string) error {
	if agent == "" || !m.heldToAgent() {
		return nil
	}
	if own, err := m.agentFor(""); err == nil && own == agent {
		return nil
	}
	return events.Errorf(events.Forbidden, "ask the agent %.100s: the credential is limited to threads, and this one has another agent; leave agentId out, or use a credential that can %s", agent, events.CanTools)
}

// mayChoose refuses another mode, which picks the agent, as mayAsk does.
func (m *decider) mayChoose(mode *string) error {
	if mode == nil || *mode == m.state.Profile.Mode || !m.heldToAgent() {
		return nil
	}
	return events.Errorf(events.Forbidden, "change the mode to %.100q: the credential is limited to threads, and picks no other agent for them; use one that can %s", *mode, events.CanTools)
}

// heldToAgent reports whether the command's credential is limited to the agents that its threads
// have.
func (m *decider) heldToAgent() bool {
	r := m.command.credential()
	return r != nil && len(r.Threads) > 0 && !r.May(events.CanTools)
}

// mayTrigger refuses a limited credential's call as what a run answers: a call that waits is made,
// like one of tool.queue.
func (m *decider) mayTrigger(t events.ItemType) error {
	if t != events.ActionExecute || m.command.credential().May(events.CanTools) {
		return nil
	}
	return events.Errorf(events.Forbidden, "the credential is limited, and begins no run with a call of a tool; queue the call with tool.queue")
}

// maySchedule refuses a limited credential's effect, but for the purge of its thread.
func (m *decider) maySchedule(d events.ScheduleEffect) error {
	if m.command.credential().May(events.CanTools) || d.Name == events.PurgeEffect {
		return nil
	}
	return events.Errorf(events.Forbidden, "schedule the effect %.100s: the credential is limited; use one that can %s", d.Name, events.CanTools)
}

// maySay refuses a limited credential's words in the name of the system or the developer. An empty
// item, which begins a run without a message, says nothing.
func (m *decider) maySay(instructs bool, content events.JSON) error {
	if m.command.credential() == nil || !instructs || content == nil || string(content) == "[]" {
		return nil
	}
	return events.Errorf(events.Forbidden, "the credential is limited, and writes no messages of the system or the developer; say it as the user, or in the agent's definition")
}

// mayInstruct refuses a limited credential's instructions for a run, which the model takes like a
// message of the system, and tools of the provider, which the agent does not list.
func (m *decider) mayInstruct(s *events.RunSettings) error {
	r := m.command.credential()
	switch {
	case r == nil || s == nil:
		return nil
	case s.Instructions != "":
		return events.Errorf(events.Forbidden, "the credential is limited, and sets no instructions of a run; say it in a message, or in the agent's definition")
	case !r.May(events.CanTools) && hasField(s.Params, "tools"):
		return events.Errorf(events.Forbidden, "the credential is limited, and adds no tools of the provider to a run; set params.tools in the model's definition, or use a credential that can %s", events.CanTools)
	}
	return nil
}

// hasField reports whether a JSON object has a field.
func hasField(object events.JSON, name string) bool {
	var fields map[string]jsontext.Value
	return json.Unmarshal(object, &fields) == nil && fields[name] != nil
}

// rightsSize returns the memory of rights.
func rightsSize(r *events.Rights) (n int64) {
	if r == nil {
		return 0
	}
	n = 96 + compact.TextSize(r.User) + int64(len(r.Can))*16
	for _, id := range r.Threads {
		n += 16 + compact.TextSize(id)
	}
	return n
}
