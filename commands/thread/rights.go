package thread

import (
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

// limit takes from the rights of a run what others lack.
func (m *maker) limit(execution string, to *events.Rights) {
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
func (m *maker) mayCall(d events.QueueTool) error {
	r := m.command.credential()
	if r.May(events.CanTools) || m.command.Lists[Called{Agent: m.state.working(), Tool: d.Name}] {
		return nil
	}
	return events.Errorf(events.Forbidden, "queue a call of %.100s: the credential is limited, and the thread's agent does not list that tool; list it in the agent's definition, or use a credential that can %s", d.Name, events.CanTools)
}

// maySchedule refuses a limited credential's effect, but for the purge of its thread.
func (m *maker) maySchedule(d events.ScheduleEffect) error {
	if m.command.credential().May(events.CanTools) || d.Name == events.PurgeEffect {
		return nil
	}
	return events.Errorf(events.Forbidden, "schedule the effect %.100s: the credential is limited; use one that can %s", d.Name, events.CanTools)
}

// maySay refuses a limited credential's words in the name of the system or the developer. An empty
// item, which begins a run without a message, says nothing.
func (m *maker) maySay(instructs bool, content events.JSON) error {
	if m.command.credential() == nil || !instructs || content == nil || string(content) == "[]" {
		return nil
	}
	return events.Errorf(events.Forbidden, "the credential is limited, and writes no messages of the system or the developer; say it as the user, or in the agent's definition")
}

// mayInstruct refuses a limited credential's instructions for a run, which the model takes like a
// message of the system.
func (m *maker) mayInstruct(s *events.RunSettings) error {
	if m.command.credential() == nil || s == nil || s.Instructions == "" {
		return nil
	}
	return events.Errorf(events.Forbidden, "the credential is limited, and sets no instructions of a run; say it in a message, or in the agent's definition")
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
