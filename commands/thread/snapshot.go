package thread

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// snapshotVersion is the form of an encoded state. One of another version is
// not read: it is derived, and is made anew from the log.
const snapshotVersion = 3

type snapshot struct {
	Form       int                       `json:"form"`
	Head       head                      `json:"head"`
	Contexts   map[string]contextState   `json:"contexts,omitempty"`
	Items      map[string]itemState      `json:"items,omitempty"`
	Executions map[string]executionState `json:"executions,omitempty"`
	Steps      map[string]stepState      `json:"steps,omitempty"`
	Files      map[string]fileState      `json:"files,omitempty"`
	Effects    map[string]effectState    `json:"effects,omitempty"`

	Definitions map[string]definitionState `json:"definitions,omitempty"`

	Receipts receipts `json:"receipts"`
}

// Encode writes the state as JSON, the same bytes for the same state.
func (s *State) Encode() ([]byte, error) {
	return json.Marshal(snapshot{
		Form: snapshotVersion, Head: s.head, Contexts: s.contexts, Items: s.items,
		Executions: s.executions, Steps: s.steps, Files: s.files, Effects: s.effects, Definitions: s.definitions, Receipts: s.receipts,
	}, json.Deterministic(true))
}

// DecodeState reads what Encode wrote. The error says that the bytes are
// broken or of another form; the state can then be made from the log.
func DecodeState(b []byte) (*State, error) {
	var in snapshot
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("a snapshot that cannot be read: %w", err)
	}
	if in.Form != snapshotVersion {
		return nil, fmt.Errorf("a snapshot of form %d; this version reads %d", in.Form, snapshotVersion)
	}
	s := &State{head: in.Head}
	for _, q := range s.Queue {
		s.bytes += q.size()
	}
	for id, v := range in.Contexts {
		s.setContext(id, v)
	}
	for id, v := range in.Items {
		s.setItem(id, v)
	}
	for id, v := range in.Executions {
		s.setExecution(id, v)
	}
	for id, v := range in.Steps {
		s.setStep(id, v)
	}
	for path, v := range in.Files {
		s.setFile(path, v)
	}
	for id, v := range in.Effects {
		s.setEffect(id, v)
	}
	for id, v := range in.Definitions {
		s.setDefinition(id, v)
	}
	s.receipts = in.Receipts
	s.receipts.index()
	return s, nil
}
