package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DefinitionKind says what is defined.
type DefinitionKind string

// The kinds of definitions.
const (
	ModelKind  DefinitionKind = "model"
	PromptKind DefinitionKind = "prompt"
	AgentKind  DefinitionKind = "agent"
	ToolKind   DefinitionKind = "tool"
	PolicyKind DefinitionKind = "policy"
	// ContextKind defines a type of contexts.
	ContextKind DefinitionKind = "context"
	SkillKind   DefinitionKind = "skill"
	ReactorKind DefinitionKind = "reactor"
	WebhookKind DefinitionKind = "webhook"
)

// Enum lists the kinds.
func (DefinitionKind) Enum() []string {
	return []string{string(ModelKind), string(PromptKind), string(AgentKind), string(ToolKind), string(PolicyKind), string(ContextKind), string(SkillKind), string(ReactorKind), string(WebhookKind)}
}

// Limits of a tenant's definitions.
const (
	MaxDefinitionBytes   = 256 << 10 // of one definition, in its canonical form
	MaxDefinitions       = 10_000    // at a time
	MaxDefinitionNames   = 100_000   // ever: a name that was removed keeps its version
	MaxDefinitionChanges = 200       // in one definition.apply
	MaxWebhooks          = 16        // at a time
)

// ModelDefinition says how to call a model. Keys and addresses of providers are the reactor's
// own configuration and are never stored here.
type ModelDefinition struct {
	Name            string   `json:"name" schema:"required,pattern=name" doc:"The name, by which agents refer to it."`
	Description     string   `json:"description,omitzero" schema:"maxLength=4096" doc:"What it is for."`
	Reactor         string   `json:"reactor,omitzero" schema:"pattern=name" doc:"The reactor that speaks to it; openai if absent."`
	Endpoint        string   `json:"endpoint,omitzero" schema:"pattern=name" doc:"The operator's endpoint that serves it, of the reactor openai; its default if absent."`
	Fallback        []string `json:"fallback,omitempty" schema:"maxItems=8,items=name" doc:"Models that are asked in its place, in this order, if its endpoint does not answer; of the reactor openai."`
	Model           string   `json:"model" schema:"required,minLength=1,maxLength=256" doc:"The provider's own name of it."`
	ContextTokens   *int64   `json:"contextTokens,omitzero" schema:"minimum=1" doc:"How many tokens it takes in all; handed to the reactor."`
	MaxOutputTokens *int64   `json:"maxOutputTokens,omitzero" schema:"minimum=1" doc:"How many tokens one answer may have."`
	Temperature     *float64 `json:"temperature,omitzero" schema:"minimum=0,maximum=2" doc:"How freely it answers."`
	Params          JSON     `json:"params,omitzero" schema:"object" doc:"What else the reactor hands to the provider. No secrets."`
}

// DefaultReactor calls a model whose definition names no reactor.
const DefaultReactor = "openai"

// WithDefaults returns the definition with every default filled in.
func (d ModelDefinition) WithDefaults() ModelDefinition {
	if d.Reactor == "" {
		d.Reactor = DefaultReactor
	}
	return d
}

// PromptDefinition is a text for a model.
type PromptDefinition struct {
	Name        string   `json:"name" schema:"required,pattern=name" doc:"The name, by which agents refer to it."`
	Description string   `json:"description,omitzero" schema:"maxLength=4096" doc:"What it is for."`
	Text        string   `json:"text" schema:"required,minLength=1" doc:"The text."`
	Variables   []string `json:"variables,omitempty" schema:"maxItems=256,items=variable" doc:"The names that are filled in, where the text says {{name}}: from the content of the run's context, else the thread's metadata, else its env, else defaults. Without any, the text is taken as it is."`
	Defaults    JSON     `json:"defaults,omitzero" schema:"object" doc:"Texts for variables that the thread does not have. A run without a value fails."`
}

// DefinitionRow declares one kind of definition, as Row does an event.
type DefinitionRow struct {
	Kind DefinitionKind
	Doc  string

	new    func() any
	decode func(JSON) (any, error)
}

// New returns a zero value of the definition's Go type.
func (r DefinitionRow) New() any { return r.new() }

func definition[T any](kind DefinitionKind, doc string) DefinitionRow {
	return DefinitionRow{Kind: kind, Doc: doc, new: func() any { return *new(T) }, decode: func(raw JSON) (any, error) {
		var v T
		err := json.Unmarshal(raw, &v)
		return v, err
	}}
}

// DefinitionRows lists the kinds of definitions, in a fixed order.
func DefinitionRows() []DefinitionRow {
	return []DefinitionRow{
		definition[ModelDefinition](ModelKind, "How a model is spoken to."),
		definition[PromptDefinition](PromptKind, "A text for a model."),
		definition[ToolDefinition](ToolKind, "What a model may call, and who does it."),
		definition[AgentDefinition](AgentKind, "Who answers in a thread: a model, a prompt, tools, and their limits."),
		definition[PolicyDefinition](PolicyKind, "What becomes of a tenant's threads by itself."),
		definition[ContextDefinition](ContextKind, "What the content of a type of contexts must be."),
		definition[SkillDefinition](SkillKind, "A text that a model loads when it needs it, and the tools that need it."),
		definition[ReactorDefinition](ReactorKind, "A reactor behind a URL."),
		definition[WebhookDefinition](WebhookKind, "Where the tenant's events are sent."),
	}
}

// DecodeDefinition decodes a stored definition into its Go type, such as ModelDefinition, by
// value. Unknown fields are ignored, as a newer version may have written them.
func DecodeDefinition(kind DefinitionKind, raw JSON) (any, error) {
	for _, r := range DefinitionRows() {
		if r.Kind == kind {
			return r.decode(raw)
		}
	}
	return nil, fmt.Errorf("decode definition: unknown kind %.64q", kind)
}

// DefinitionOf returns a definition as an apply takes it: a value of one of the Go types of
// definitions, such as an AgentDefinition, or a NewDefinition as it is.
func DefinitionOf(definition any) (NewDefinition, error) {
	if whole, is := definition.(NewDefinition); is {
		return whole, nil
	}
	for _, r := range DefinitionRows() {
		if reflect.TypeOf(r.New()) != reflect.TypeOf(definition) {
			continue
		}
		raw, err := EncodeDefinition(definition)
		if err != nil {
			return NewDefinition{}, fmt.Errorf("encode the definition as JSON: %w", err)
		}
		return NewDefinition{Kind: r.Kind, Definition: raw}, nil
	}
	return NewDefinition{}, fmt.Errorf("no definition has the type %T; see events.DefinitionRows", definition)
}

// EncodeDefinition encodes a definition in its canonical form: no spaces, names in order,
// absent values omitted, strings escaped in one way, numbers unchanged. Two equal definitions
// have the same bytes.
func EncodeDefinition(definition any) (JSON, error) {
	raw, err := json.Marshal(definition, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	v := JSON(raw)
	err = (*jsontext.Value)(&v).Format(jsontext.ReorderRawObjects(true))
	return v, err
}

// DefinitionDigest returns the hex SHA-256 of a definition in its canonical form.
func DefinitionDigest(canonical JSON) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// DefinitionRef names a definition. Path is the JSON pointer at which another definition names
// it, empty if none does.
type DefinitionRef struct {
	Kind DefinitionKind `json:"kind" schema:"required" doc:"What it defines."`
	Name string         `json:"name" schema:"required,pattern=name" doc:"Its name."`
	Path string         `json:"-"`
}

// String returns kind and name for people: "agent support".
func (r DefinitionRef) String() string { return string(r.Kind) + " " + r.Name }

// ID returns the reference as one string, "agent/support": the subject of its events.
func (r DefinitionRef) ID() string { return string(r.Kind) + "/" + r.Name }

// Key returns the key of its document after the tenant's name: "agent.support". Characters
// that a name may have and a token of a key may not are written as = and two hexadecimal
// digits.
func (r DefinitionRef) Key() string { return string(r.Kind) + "." + keyToken(r.Name) }

func keyToken(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// ParseDefinitionKey parses what Key returns.
func ParseDefinitionKey(key string) (DefinitionRef, bool) {
	kind, token, ok := strings.Cut(key, ".")
	if !ok {
		return DefinitionRef{}, false
	}
	var name []byte
	for i := 0; i < len(token); i++ {
		if token[i] != '=' {
			name = append(name, token[i])
			continue
		}
		if i+2 >= len(token) {
			return DefinitionRef{}, false
		}
		c, err := hex.DecodeString(token[i+1 : i+3])
		if err != nil {
			return DefinitionRef{}, false
		}
		name = append(name, c[0])
		i += 2
	}
	r := DefinitionRef{Kind: DefinitionKind(kind), Name: string(name)}
	return r, r.Key() == key && len(name) > 0
}

// DefinitionName returns the name of a definition, passed as its Go type.
func DefinitionName(definition any) string {
	switch d := definition.(type) {
	case ModelDefinition:
		return d.Name
	case PromptDefinition:
		return d.Name
	case ToolDefinition:
		return d.Name
	case AgentDefinition:
		return d.Name
	case PolicyDefinition:
		return d.Name
	case ContextDefinition:
		return d.Name
	case SkillDefinition:
		return d.Name
	case ReactorDefinition:
		return d.Name
	case WebhookDefinition:
		return d.Name
	}
	return ""
}

// DefinitionRefs returns what a definition, passed as its Go type, refers to. It works only if
// all of them exist.
func DefinitionRefs(definition any) []DefinitionRef {
	switch d := definition.(type) {
	case ModelDefinition:
		return refs{}.all(ModelKind, "/fallback", d.Fallback)
	case ToolDefinition:
		return refs{}.add(AgentKind, "/agent", d.Agent)
	case AgentDefinition:
		list := refs{}.add(ModelKind, "/model", d.Model).add(PromptKind, "/prompt", d.Prompt).all(ToolKind, "/tools", d.Tools).all(SkillKind, "/skills", d.Skills)
		for _, side := range []struct {
			path string
			*AgentSide
		}{{"/sideA", d.SideA}, {"/sideB", d.SideB}} {
			if s := side.AgentSide; s != nil {
				list = list.add(ModelKind, side.path+"/model", s.Model).add(PromptKind, side.path+"/prompt", s.Prompt).all(ToolKind, side.path+"/tools", s.Tools)
			}
		}
		return list
	case SkillDefinition:
		return refs{}.all(ToolKind, "/tools", d.Tools)
	}
	return nil
}

type refs []DefinitionRef

func (r refs) add(kind DefinitionKind, path, name string) refs {
	if name == "" {
		return r
	}
	return append(r, DefinitionRef{Kind: kind, Name: name, Path: path})
}

func (r refs) all(kind DefinitionKind, path string, names []string) refs {
	for i, name := range names {
		r = r.add(kind, fmt.Sprintf("%s/%d", path, i), name)
	}
	return r
}

// ContextDefinition declares a type of contexts: the schema of their content. A context names
// its type when it is created; from then on each write of its content must satisfy the
// definition as it is at that moment. Content written earlier stays readable, whatever happens
// to the definition.
type ContextDefinition struct {
	Name        string `json:"name" schema:"required,pattern=name" doc:"The name, by which contexts refer to it."`
	Description string `json:"description,omitzero" schema:"maxLength=4096" doc:"What it is for."`
	Schema      JSON   `json:"schema" schema:"required,object" doc:"The JSON Schema (2020-12) of the content, an object."`
}
