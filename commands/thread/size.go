package thread

import (
	"math/bits"
	"unsafe"

	"github.com/skein-threads/skein/events"
)

// Bytes estimates the memory that the state occupies, in bytes: its maps, and the strings and
// lists in them.
func (s *State) Bytes() int64 {
	return int64(unsafe.Sizeof(State{})) + s.bytes + s.receipts.bytes() + s.Profile.size() + s.Sessions.size() +
		room[contextState](len(s.contexts)) + room[itemState](len(s.items)) + room[executionState](len(s.executions)) + room[stepState](len(s.steps)) +
		room[fileState](len(s.files)) + room[effectState](len(s.effects)) +
		room[relationState](len(s.relations)) + room[definitionState](len(s.definitions))
}

// room estimates the size of a map of so many entries, without the text of its string keys. A
// small map has room for eight, a larger one for the next power of two, until it consists of
// several tables of a thousand each.
func room[V any](entries int) int64 {
	const header, control = 48, 1
	slot := int64(unsafe.Sizeof("") + unsafe.Sizeof(*new(V)) + control)
	switch {
	case entries == 0:
		return 0
	case entries <= 8:
		return header + 8*slot
	case entries <= 896: // seven eighths of 1,024
		return header + slot<<bits.Len(uint((entries*8-1)/7))
	}
	return header + slot*int64(entries)*3/2
}

// textSize is the allocated size of a string.
func textSize(s string) int64 { return int64(len(s)+15) &^ 15 }

func (c contextState) size() int64 { return textSize(c.Key) + textSize(c.Type) + int64(len(c.Content)) }

func (i itemState) size() int64 { return 48 * int64(len(i.Calls)) }

func (x executionState) size() int64 {
	n := textSize(x.Trigger) + textSize(x.Reaction) + textSize(x.Session)
	if x.Run != nil {
		n += int64(unsafe.Sizeof(*x.Run)) + 100*int64(len(x.Run.Calls)+len(x.Run.First)+len(x.Run.Lacks))
		if h := x.Run.Handoff; h != nil {
			n += int64(unsafe.Sizeof(*h)) + textSize(h.ThreadID) + textSize(h.AgentID) + textSize(h.Key) + textSize(h.Comment)
		}
		for _, c := range x.Run.Calls {
			n += int64(len(c.Fits))
		}
		for _, id := range x.Run.Left {
			n += textSize(id) + 16
		}
		n += settingsSize(x.Run.Settings)
	}
	return n
}

// settingsSize estimates the size of the settings of a run.
func settingsSize(s *events.RunSettings) int64 {
	if s == nil {
		return 0
	}
	n := int64(unsafe.Sizeof(*s)) + textSize(s.Instructions) + int64(len(s.Params)+len(s.Metadata))
	for _, t := range s.Tools {
		n += int64(unsafe.Sizeof(t)) + textSize(t.Name) + textSize(t.Description) + int64(len(t.Parameters))
	}
	return n
}

func (t stepState) size() int64 { return 8 * int64(len(t.Parts.More)) }

func (f fileState) size() int64 { return int64(len(f.Digest)) }

func (e effectState) size() int64 { return textSize(e.Cron) }

func (d definitionState) size() int64 {
	n := textSize(d.Digest)
	for _, ref := range d.Refs {
		n += textSize(ref) + 16
	}
	return n
}

func (q queued) size() int64 {
	return int64(unsafe.Sizeof(q)) + int64(len(q.Item)) + textSize(q.Execution) + textSize(q.Reaction) + textSize(q.Session) + settingsSize(q.Settings)
}
