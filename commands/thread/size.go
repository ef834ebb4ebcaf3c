package thread

import (
	"unsafe"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// Bytes estimates the memory that the state occupies, in bytes: its maps, and the strings and
// lists in them.
func (s *State) Bytes() int64 {
	return int64(unsafe.Sizeof(State{})) + s.bytes + s.receipts.bytes() + s.Profile.size() + s.Sessions.size() +
		s.items.Bytes() + s.executions.Bytes() + s.steps.Bytes() + s.pool.size() +
		compact.Room[string, contextState](len(s.contexts)) + compact.Room[string, fileState](len(s.files)) + compact.Room[string, effectState](len(s.effects)) +
		compact.Room[string, relationState](len(s.relations)) + compact.Room[string, definitionState](len(s.definitions))
}

func (c contextState) size() int64 {
	return compact.TextSize(c.Key) + compact.TextSize(c.Type) + int64(len(c.Content))
}

// Size returns the bytes that the value refers to.
func (i itemState) Size() int64 { return 48 * int64(len(i.Calls)) }

// Size returns the bytes that the value refers to.
func (x executionState) Size() int64 {
	n := compact.TextSize(x.Trigger) + compact.TextSize(x.Reaction) + compact.TextSize(x.Session)
	if x.Run != nil {
		n += int64(unsafe.Sizeof(*x.Run)) + 100*int64(len(x.Run.Calls)+len(x.Run.First)+len(x.Run.Missing))
		if h := x.Run.Handoff; h != nil {
			n += int64(unsafe.Sizeof(*h)) + compact.TextSize(h.ThreadID) + compact.TextSize(h.AgentID) + compact.TextSize(h.Key) + compact.TextSize(h.Comment)
		}
		for _, c := range x.Run.Calls {
			n += int64(len(c.Fits) + len(c.Part))
		}
		for _, id := range x.Run.Left {
			n += compact.TextSize(id) + 16
		}
		n += settingsSize(x.Run.Settings) + rightsSize(x.Run.Rights) + compact.TextSize(x.Run.Item) + compact.TextSize(x.Run.Steers)
	}
	return n
}

// settingsSize estimates the size of the settings of a run.
func settingsSize(s *events.RunSettings) int64 {
	if s == nil {
		return 0
	}
	n := int64(unsafe.Sizeof(*s)) + compact.TextSize(s.Instructions) + int64(len(s.Params)+len(s.Metadata))
	for _, t := range s.Tools {
		n += int64(unsafe.Sizeof(t)) + compact.TextSize(t.Name) + compact.TextSize(t.Description) + int64(len(t.Parameters))
	}
	return n
}

// Size returns the bytes that the value refers to.
func (t stepState) Size() int64 { return 8 * int64(len(t.Parts.More)) }

func (f fileState) size() int64 { return int64(len(f.Digest)) }

func (e effectState) size() int64 { return compact.TextSize(e.Cron) + rightsSize(e.Rights) }

func (d definitionState) size() int64 {
	n := compact.TextSize(d.Digest)
	for _, ref := range d.Refs {
		n += compact.TextSize(ref) + 16
	}
	return n
}

func (q queued) size() int64 {
	return int64(unsafe.Sizeof(q)) + int64(len(q.Item)) + compact.TextSize(q.Execution) + compact.TextSize(q.Reaction) + compact.TextSize(q.Session) + settingsSize(q.Settings) + rightsSize(q.Rights)
}
