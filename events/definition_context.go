package events

// ContextDefinition declares a type of contexts: what their content must be. A
// context says its type when it is made; from then on each write of its content
// is held to the definition as it is at that moment. What was written before
// stays readable, whatever becomes of the definition.
type ContextDefinition struct {
	Name        string `json:"name" schema:"required,pattern=name" doc:"The name, by which contexts refer to it."`
	Description string `json:"description,omitzero" schema:"maxLength=4096" doc:"What it is for."`
	Schema      JSON   `json:"schema" schema:"required,object" doc:"The JSON Schema (2020-12) of the content, an object."`
}
