package events

// ContextDefinition declares a type of contexts: the schema of their content. A context names
// its type when it is created; from then on each write of its content must satisfy the
// definition as it is at that moment. Content written earlier stays readable, whatever happens
// to the definition.
type ContextDefinition struct {
	Name        string `json:"name" schema:"required,pattern=name" doc:"The name, by which contexts refer to it."`
	Description string `json:"description,omitzero" schema:"maxLength=4096" doc:"What it is for."`
	Schema      JSON   `json:"schema" schema:"required,object" doc:"The JSON Schema (2020-12) of the content, an object."`
}
