package thread

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
)

// applyDefinitions puts the tenant's definitions into the given state. They are in canonical form,
// which the schema check ensures. A definition that is already in that state causes no event, so a
// repeat of the command changes nothing.
func (m *decider) applyDefinitions(d events.ApplyDefinitions) error {
	if m.command.ThreadID != events.TenantAggregate {
		return events.Invalid("", "definition.apply is of the tenant, and of no thread")
	}
	if len(d.Definitions) == 0 && len(d.Remove) == 0 {
		return events.Invalid("", "definition.apply needs definitions, or remove")
	}
	named := map[string]bool{}
	once := func(ref events.DefinitionRef, list string, i int) error {
		if named[ref.ID()] {
			return events.Invalid(fmt.Sprintf("/%s/%d", list, i), "%s is named twice", ref)
		}
		named[ref.ID()] = true
		return nil
	}
	changed := map[int]events.NewDefinition{}
	for i, def := range d.Definitions {
		if err := once(def.Ref(), "definitions", i); err != nil {
			return err
		}
		if m.define(def) {
			changed[i] = def
		}
	}
	removed := map[string]int{}
	for i, ref := range d.Remove {
		if err := once(ref, "remove", i); err != nil {
			return err
		}
		if m.undefine(ref) {
			removed[ref.ID()] = i
		}
	}
	if n := len(m.made); n > events.MaxDefinitionChanges {
		return events.Invalid("", "this changes %d definitions; at most %d may change at once: apply them in parts, what is referred to first", n, events.MaxDefinitionChanges)
	}
	if len(m.made) == 0 {
		return nil
	}
	return m.checkDefinitions(changed, removed, d.Remove)
}

// define reports whether the definition is a change, and emits its event if so.
func (m *decider) define(def events.NewDefinition) bool {
	was := m.state.definition(def.Ref().ID())
	digest := events.DefinitionDigest(def.Definition)
	if was.Digest == digest {
		return false
	}
	e := events.DefinitionChanged{Kind: def.Kind, Name: def.Name, Version: was.Version + 1, Digest: digest, Definition: def.Definition}
	if was.there() {
		e.Previous = was.Version
	}
	m.emit(events.DefinitionChangedType, def.Ref().ID(), "", e)
	return true
}

// undefine reports whether the definition exists, and if so removes it.
func (m *decider) undefine(ref events.DefinitionRef) bool {
	was := m.state.definition(ref.ID())
	if !was.there() {
		return false
	}
	m.emit(events.DefinitionChangedType, ref.ID(), "", events.DefinitionChanged{
		Kind: ref.Kind, Name: ref.Name, Version: was.Version + 1, Previous: was.Version,
	})
	return true
}

// hasTool reports whether ref names a Go tool of this process, which needs no definition.
func (m *decider) hasTool(ref events.DefinitionRef) bool {
	return ref.Kind == events.ToolKind && m.command.Tools[ref.Name]
}

// endpointsOf returns the endpoints that d's models name.
func endpointsOf(d events.ApplyDefinitions) []string {
	var names []string
	for _, def := range d.Definitions {
		value, err := events.DecodeDefinition(def.Kind, def.Definition)
		if m, is := value.(events.ModelDefinition); err == nil && is && m.Endpoint != "" { // otherwise the decision reports it
			names = append(names, m.Endpoint)
		}
	}
	return names
}

// toolsOf returns the tools that d's definitions refer to, and the tools whose definition d
// removes.
func toolsOf(d events.ApplyDefinitions) []string {
	var names []string
	for _, def := range d.Definitions {
		value, err := events.DecodeDefinition(def.Kind, def.Definition)
		if err != nil { // the decision reports it
			continue
		}
		for _, ref := range events.DefinitionRefs(value) {
			if ref.Kind == events.ToolKind {
				names = append(names, ref.Name)
			}
		}
	}
	for _, ref := range d.Remove {
		if ref.Kind == events.ToolKind {
			names = append(names, ref.Name)
		}
	}
	return names
}

// checkDefinitions checks the rules that span definitions, on the state after the change. removed
// maps each removed definition to its index in refs.
func (m *decider) checkDefinitions(changed map[int]events.NewDefinition, removed map[string]int, refs []events.DefinitionRef) error {
	for _, i := range slices.Sorted(maps.Keys(changed)) {
		value, err := events.DecodeDefinition(changed[i].Kind, changed[i].Definition)
		if err != nil { // the schema check has decoded it before
			return events.Invalid("/definitions/"+strconv.Itoa(i)+"/definition", "%w", err)
		}
		model, _ := value.(events.ModelDefinition)
		if at := slices.Index(model.Fallback, model.Name); at >= 0 {
			return events.Invalid("/definitions/"+strconv.Itoa(i)+"/definition/fallback/"+strconv.Itoa(at),
				"%s names itself as its fallback; name another model, or none: the endpoint's option attempts says how often a model is asked", changed[i].Ref())
		}
		if m.command.Absent[model.Endpoint] {
			return events.Invalid("/definitions/"+strconv.Itoa(i)+"/definition/endpoint",
				"%s names the endpoint %s, which does not exist here; name one that the operator has declared with --model-endpoint, or none", changed[i].Ref(), model.Endpoint)
		}
		for _, ref := range events.DefinitionRefs(value) {
			if !m.state.definition(ref.ID()).there() && !m.hasTool(ref) {
				return events.Invalid("/definitions/"+strconv.Itoa(i)+"/definition"+ref.Path,
					"%s refers to the %s, which is not defined; define it before, or in the same apply; a Go tool needs no definition on a server that has it", changed[i].Ref(), ref)
			}
		}
	}
	all := m.state.allDefinitions()
	there, webhooks := 0, 0
	users := map[string]string{} // for each removed definition, the first definition by name that refers to it
	for id, def := range all {
		if !def.there() {
			continue
		}
		there++
		if strings.HasPrefix(id, string(events.WebhookKind)+"/") {
			webhooks++
		}
		for _, ref := range def.Refs {
			if at, ok := removed[ref]; ok && !m.hasTool(refs[at]) && (users[ref] == "" || id < users[ref]) {
				users[ref] = id
			}
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(users)) {
		return events.Invalid("/remove/"+strconv.Itoa(removed[ref]), "%s is still referred to by %s; change that, or remove it too", ref, users[ref])
	}
	switch {
	case there > events.MaxDefinitions:
		return events.Invalid("", "there would be %d definitions; at most %d are allowed: remove some", there, events.MaxDefinitions)
	case webhooks > events.MaxWebhooks:
		return events.Invalid("", "there would be %d webhooks; at most %d are allowed: remove some", webhooks, events.MaxWebhooks)
	case len(all) > events.MaxDefinitionNames:
		return events.Invalid("", "there would have been %d names of definitions; at most %d are allowed ever", len(all), events.MaxDefinitionNames)
	}
	return nil
}

// definitionState is what decisions need to know about a definition. It does not hold the
// definition's text, so ten thousand of them stay small.
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
