package thread

import (
	"github.com/skein-threads/skein/events"
)

// definitionState is what decisions need to know of a definition: not the
// definition itself, so that ten thousand of them stay small.
type definitionState struct {
	Version int64    `json:"version"`
	Digest  string   `json:"digest,omitzero"` // empty: it was removed
	Refs    []string `json:"refs,omitempty"`
}

func (d definitionState) there() bool { return d.Digest != "" }

// definitionOf gives what an event says of a definition.
func definitionOf(d events.DefinitionChanged) definitionState {
	s := definitionState{Version: d.Version}
	if d.Definition == nil {
		return s
	}
	if s.Digest = d.Digest; s.Digest == "" { // a foreign log; it is there all the same
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

// allDefinitions gives the definitions of all layers by kind/name, those that
// were removed too.
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
