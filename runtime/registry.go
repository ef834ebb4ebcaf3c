package runtime

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// Registry holds the reactors, tools, effects, hooks and loop policies of this process,
// by name. It is safe for concurrent use; entries are never removed.
type Registry struct {
	schemas  *arguments.Checker
	reactors shelf[Reactor]
	tools    shelf[Tool]
	effects  shelf[Effect]
	hooks    shelf[Hooks]
	loops    shelf[Loop]
}

// Loop is a loop policy: it reports whether another step follows one with that outcome.
// See Agent.Continue.
type Loop func(Outcome) bool

// NewRegistry returns an empty registry. Schemas of tools are compiled by schemas,
// which may be shared with the callers of the tools; nil creates a new one.
func NewRegistry(schemas *arguments.Checker) *Registry {
	if schemas == nil {
		schemas = arguments.New()
	}
	return &Registry{
		schemas:  schemas,
		reactors: shelf[Reactor]{kind: "reactor", named: map[string]Reactor{}},
		tools:    shelf[Tool]{kind: "tool", named: map[string]Tool{}},
		effects:  shelf[Effect]{kind: "effect", named: map[string]Effect{}},
		hooks:    shelf[Hooks]{kind: "hook", named: map[string]Hooks{}},
		loops:    shelf[Loop]{kind: "loop policy", named: map[string]Loop{}},
	}
}

// AddReactor adds a reactor under a name of 1 to 64 of A-Z a-z 0-9 _ -. The error is an
// *events.Error: invalid_request, or already_exists if the name is in use; nothing has
// changed then.
func (r *Registry) AddReactor(name string, reactor Reactor) error {
	if err := checkName("reactor", name); err != nil {
		return err
	}
	if isNil(reactor) {
		return events.Invalid("", "the reactor %s is nil", name)
	}
	return r.reactors.add(name, reactor)
}

// AddTool adds a tool under the name in its spec. Errors are those of AddReactor; the
// parameters must be a schema that arguments.Compile accepts.
func (r *Registry) AddTool(tool Tool) error {
	if isNil(tool) {
		return events.Invalid("", "the tool is nil")
	}
	spec := tool.Spec()
	if err := checkName("tool", spec.Name); err != nil {
		return err
	}
	if spec.Timeout < 0 || spec.Retries < -1 || spec.Backoff < -1 {
		return events.Invalid("", "the tool %s has a timeout below 0, or retries or a backoff below -1", spec.Name)
	}
	if err := r.schemas.CheckSchema(spec.Parameters); err != nil {
		return events.Invalid("/parameters", "the tool %s: %w", spec.Name, err)
	}
	return r.tools.add(spec.Name, register(tool, spec))
}

// AddHooks adds hooks under a name, for the agents whose definitions name them. Errors
// are those of AddReactor.
func (r *Registry) AddHooks(name string, hooks Hooks) error {
	if err := checkName("hook", name); err != nil {
		return err
	}
	if reflect.ValueOf(hooks).IsZero() {
		return events.Invalid("", "the hook %s has no function", name)
	}
	return r.hooks.add(name, hooks)
}

// AddEffect adds an effect under a name. Errors are those of AddReactor.
func (r *Registry) AddEffect(name string, effect Effect) error {
	if err := checkName("effect", name); err != nil {
		return err
	}
	if isNil(effect) {
		return events.Invalid("", "the effect %s is nil", name)
	}
	return r.effects.add(name, effect)
}

// AddLoop adds the loop policy of the agents with a name, of every tenant. It takes
// precedence over their definitions. Errors are those of AddReactor.
func (r *Registry) AddLoop(agent string, loop Loop) error {
	if err := checkName("agent", agent); err != nil {
		return err
	}
	if loop == nil {
		return events.Invalid("", "the loop policy of the agent %s is nil", agent)
	}
	return r.loops.add(agent, loop)
}

// Effect returns the effect with that name, or not_found.
func (r *Registry) Effect(name string) (Effect, error) { return r.effects.find(name) }

// Loop returns the loop policy of an agent, or not_found.
func (r *Registry) Loop(agent string) (Loop, error) { return r.loops.find(agent) }

// Hooks returns the hooks with that name, or not_found.
func (r *Registry) Hooks(name string) (Hooks, error) { return r.hooks.find(name) }

// Reactor returns the reactor with that name, or not_found.
func (r *Registry) Reactor(name string) (Reactor, error) { return r.reactors.find(name) }

// Tool returns the tool with that name, or not_found.
func (r *Registry) Tool(name string) (Tool, error) { return r.tools.find(name) }

// Reactors returns the names of the reactors, sorted.
func (r *Registry) Reactors() []string { return r.reactors.names() }

// Tools returns the names of the tools, sorted.
func (r *Registry) Tools() []string { return r.tools.names() }

// shelf holds the entries of one kind, by name.
type shelf[T any] struct {
	kind  string
	mu    sync.RWMutex // guards named
	named map[string]T
}

func (s *shelf[T]) add(name string, value T) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.named[name]; ok {
		return events.Taken(s.kind, name)
	}
	s.named[name] = value
	return nil
}

func (s *shelf[T]) find(name string) (T, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.named[name]
	if !ok {
		return value, events.Missing(s.kind, name)
	}
	return value, nil
}

func (s *shelf[T]) names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.named))
}

// checkName validates a name for models, subjects and files: 1 to 64 of A-Z a-z 0-9 _
// -.
func checkName(kind, name string) error {
	ok := name != "" && len(name) <= 64
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	if !ok {
		return events.Invalid("/name", "the %s's name %.80q must be 1 to 64 letters, digits, _ and -", kind, name)
	}
	return nil
}

// isNil reports whether a value is nil, also within an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// registered is a tool of this process with the spec that it had when it was registered: Spec,
// which may panic, is not called again.
type registered struct {
	Tool
	spec ToolSpec
}

// Spec implements Tool.
func (r registered) Spec() ToolSpec { return r.spec }

// registeredPerson is registered for a tool that asks a person.
type registeredPerson struct {
	registered
	person PersonTool
}

// Ask implements PersonTool.
func (r registeredPerson) Ask(arguments events.JSON) (string, events.JSON) {
	return r.person.Ask(arguments)
}

// registeredAgent is registered for a tool that is another agent.
type registeredAgent struct {
	registered
	agent string
	apart bool
}

// AgentName implements AgentTool.
func (r registeredAgent) AgentName() string { return r.agent }

// Apart implements AgentTool.
func (r registeredAgent) Apart() bool { return r.apart }

// register returns a tool with its spec read once, as registered, registeredPerson or
// registeredAgent.
func register(tool Tool, spec ToolSpec) Tool {
	r := registered{tool, spec}
	switch t := tool.(type) {
	case PersonTool:
		return registeredPerson{r, t}
	case AgentTool:
		return registeredAgent{r, t.AgentName(), t.Apart()}
	}
	return r
}
