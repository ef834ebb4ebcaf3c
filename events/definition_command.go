package events

// ApplyDefinitions puts a tenant's definitions into the given state, all in one commit or none
// of them. Those that already are in that state are left alone.
type ApplyDefinitions struct {
	Definitions []NewDefinition `json:"definitions,omitempty" schema:"maxItems=1000" doc:"What to add or change; at most 200 may differ from the present ones."`
	Remove      []DefinitionRef `json:"remove,omitempty" schema:"maxItems=1000" doc:"The definitions to remove."`
	DryRun      bool            `json:"dryRun,omitzero" doc:"Dry run: only report what would change."`
}

// NewDefinition is one definition of an apply.
type NewDefinition struct {
	Kind       DefinitionKind `json:"kind" schema:"required" doc:"What it defines."`
	Name       string         `json:"name,omitzero" schema:"pattern=name" doc:"Its name; absent, or the name that the definition has."`
	Definition JSON           `json:"definition" schema:"required,object" doc:"The definition, as in schema/files/definitions."`
}

// Ref returns the reference to what it defines.
func (d NewDefinition) Ref() DefinitionRef { return DefinitionRef{Kind: d.Kind, Name: d.Name} }

func definitionCommands() []Command {
	apply := command("definition.apply", "Adds, changes and removes definitions of the tenant.", ApplyDefinitions{
		Definitions: []NewDefinition{
			{Kind: ModelKind, Definition: JSON(`{"name":"fast","model":"gpt-5-mini"}`)},
			{Kind: AgentKind, Definition: JSON(`{"name":"triage","type":"ai_human","model":"fast"}`)},
		},
		Remove: []DefinitionRef{{Kind: PromptKind, Name: "old"}},
	}, DefinitionChangedType)
	apply.Single, apply.Tenant = true, true
	return []Command{apply}
}

// DefinitionOutcome says what an apply did to a definition.
type DefinitionOutcome string

// The outcomes of an apply.
const (
	DefinitionAdded   DefinitionOutcome = "added"
	DefinitionUpdated DefinitionOutcome = "changed"
	DefinitionRemoved DefinitionOutcome = "removed"
)

// Enum lists the outcomes.
func (DefinitionOutcome) Enum() []string {
	return []string{string(DefinitionAdded), string(DefinitionUpdated), string(DefinitionRemoved)}
}

// DefinitionChange is one change of an apply.
type DefinitionChange struct {
	Kind    DefinitionKind    `json:"kind" schema:"required" doc:"What it defines."`
	Name    string            `json:"name" schema:"required,pattern=name" doc:"Its name."`
	Outcome DefinitionOutcome `json:"outcome" schema:"required" doc:"What was done."`
	Version int64             `json:"version" schema:"required,minimum=1" doc:"Its own version, from 1."`
}

// Change returns the event as the change that a reply reports.
func (d DefinitionChanged) Change() DefinitionChange {
	c := DefinitionChange{Kind: d.Kind, Name: d.Name, Version: d.Version, Outcome: DefinitionUpdated}
	switch {
	case d.Definition == nil:
		c.Outcome = DefinitionRemoved
	case d.Previous == 0:
		c.Outcome = DefinitionAdded
	}
	return c
}
