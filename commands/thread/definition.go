package thread

import (
	"github.com/skein-threads/skein/events"
)

// definitionState is what decisions need to know about a definition. It omits the definition
// itself, so that ten thousand of them stay small.
type definitionState struct {
	Version int64    `json:"version"`
	Digest  string   `json:"digest,omitzero"` // empty: the definition was removed
	Refs    []string `json:"refs,omitempty"`
}

func (d definitionState) there() bool { return d.Digest != "" }

// definitionOf returns the state after an event of a definition.
func definitionOf(d events.DefinitionChanged) definitionState {
	s := definitionState{Version: d.Version}
	if d.Definition == nil {
		return s
	}
	if s.Digest = d.Digest; s.Digest == "" { // from another log; it exists all the same
		s.Digest = events.DefinitionDigest(d.Definition)
	}
	if value, err := events.DecodeDefinition(d.Kind, d.Definition); err == nil {
		for _, ref := range events.DefinitionRefs(value) {
			s.Refs = append(s.Refs, ref.ID())
		}
	}
	return s
}

func (s *State) definition(id string) definitionState {
	for ; s != nil; s = s.parent {
		if v, ok := s.definitions[id]; ok {
			return v
		}
	}
	return definitionState{}
}

func (s *State) setDefinition(id string, v definitionState) {
	if s.definitions == nil {
		s.definitions = map[string]definitionState{}
	}
	set(s, s.definitions, id, v)
}

// allDefinitions returns the definitions of all layers by kind/name, including those that were
// removed.
func (s *State) allDefinitions() map[string]definitionState {
	if s.parent == nil {
		return s.definitions
	}
	all := map[string]definitionState{}
	for ; s != nil; s = s.parent {
		for id, v := range s.definitions {
			if _, newer := all[id]; !newer {
				all[id] = v
			}
		}
	}
	return all
}
