package events

import (
	"slices"
	"strings"
)

// ToolType says who executes a tool's calls.
type ToolType string

// The types of tools.
const (
	GoTool     ToolType = "go"     // a function of the process that runs the agent
	NATSTool   ToolType = "nats"   // a process that answers on skein.tool.{name}
	MCPTool    ToolType = "mcp"    // a server of the Model Context Protocol
	AgentTool  ToolType = "agent"  // another agent
	PersonTool ToolType = "person" // a person, who is asked
	HTTPTool   ToolType = "http"   // an endpoint that Skein calls
	A2ATool    ToolType = "a2a"    // an agent elsewhere, which speaks Agent2Agent
)

// Enum lists the types.
func (ToolType) Enum() []string {
	return []string{string(GoTool), string(NATSTool), string(MCPTool), string(AgentTool), string(PersonTool), string(HTTPTool), string(A2ATool)}
}

// ToolDefinition says what a model may call, and who executes it.
type ToolDefinition struct {
	Name         string        `json:"name" schema:"required,pattern=tool" doc:"The name, as the model calls it; of a whole server, what the names of its tools begin with, before __."`
	Description  string        `json:"description" schema:"required,minLength=1,maxLength=16384" doc:"What it does and when to use it."`
	Type         ToolType      `json:"type" schema:"required" doc:"Who does it: a function of the process, a process on NATS, an MCP server, another agent, a person who answers with approval.resolve, an HTTP endpoint, or an agent elsewhere that speaks A2A."`
	Parameters   JSON          `json:"parameters,omitzero" schema:"object" doc:"The JSON Schema (2020-12) of its arguments, an object; none if absent, or what the MCP server says. Not of type a2a: a message, and the task that it goes on with."`
	Auto         *bool         `json:"auto,omitzero" doc:"A call is made at once; true if absent. If false, it waits for an approval."`
	Idempotent   *bool         `json:"idempotent,omitzero" doc:"A call that may have been made may be made again; false if absent."`
	ReadOnly     *bool         `json:"readOnly,omitzero" doc:"It changes nothing; false if absent."`
	Portable     *bool         `json:"portable,omitzero" doc:"It can be packed and shared: it uses nothing of the process that it runs in; true if absent."`
	TimeoutMs    *int64        `json:"timeoutMs,omitzero" schema:"minimum=1" doc:"Milliseconds that one call may take. Not of type agent: the limits of that agent hold."`
	WorkerWaitMs *int64        `json:"workerWaitMs,omitzero" schema:"minimum=0,maximum=86400000" doc:"Milliseconds that a call waits for a process that serves the tool, when none does; what the agent's limits say if absent, 0: not at all."`
	Retries      *Retries      `json:"retries,omitzero" doc:"How often a call is tried after a temporary failure, if the tool is idempotent or readOnly or the call was not made; absent: as the agent says."`
	Server       *ToolServer   `json:"server,omitzero" doc:"The MCP server, of type mcp; or of type a2a where the agent's card is, by its url and tokenEnv alone."`
	HTTP         *HTTPEndpoint `json:"http,omitzero" doc:"The endpoint; of type http."`
	Agent        string        `json:"agent,omitzero" schema:"pattern=name" doc:"The agent; of type agent."`
	OwnThread    *bool         `json:"ownThread,omitzero" doc:"Of type agent: it answers in a thread of its own, and the call's result is its answer; false if absent: it takes the thread over. One of type dual_ai always has a thread of its own."`
	Question     string        `json:"question,omitzero" schema:"maxLength=16384" doc:"Of type person: what is asked, with {{name}} for the argument of that name; what the model asks if absent."`
	Answer       JSON          `json:"answer,omitzero" schema:"object" doc:"Of type person: the JSON Schema (2020-12) of the answer; any JSON if absent. At most 16 KiB."`
}

// Retries says how often an attempt is repeated, and how long to wait between attempts.
type Retries struct {
	Attempts  int64  `json:"attempts" schema:"required,minimum=1,maximum=100" doc:"How often it is tried in all."`
	BackoffMs *int64 `json:"backoffMs,omitzero" schema:"minimum=0,maximum=3600000" doc:"The wait before the second try, 250 if absent; it doubles from try to try, up to an hour."`
}

// ToolServer is an MCP server: a program to start, or an address.
type ToolServer struct {
	Command  string   `json:"command,omitzero" schema:"maxLength=1024" doc:"The program to start, which speaks MCP on its standard input and output."`
	Args     []string `json:"args,omitempty" schema:"maxItems=256" doc:"Its arguments. No secrets."`
	Env      []string `json:"env,omitempty" schema:"maxItems=256,items=variable" doc:"The names of the environment variables that it gets, from those of the process that starts it. Names alone: a definition holds no secret."`
	URL      string   `json:"url,omitzero" schema:"maxLength=2048" doc:"The address of a server on HTTP."`
	TokenEnv string   `json:"tokenEnv,omitzero" schema:"pattern=variable" doc:"The name of the environment variable with the bearer token for the address."`
	Tool     string   `json:"tool,omitzero" schema:"maxLength=256" doc:"The tool's name at the server, if it has another there."`
	Include  []string `json:"include,omitempty" schema:"maxItems=256" doc:"Makes the definition one of a whole server: all of its tools that are called so there, where * stands for any text."`
	Exclude  []string `json:"exclude,omitempty" schema:"maxItems=256" doc:"Which of them not, in the same way."`
}

// Check validates what spans more than one field.
func (d ToolDefinition) Check() error {
	switch {
	case d.Type == MCPTool && d.Server == nil:
		return Invalid("/server", "a tool of type mcp needs a server, with a command or a url")
	case d.Type == A2ATool:
		return d.checkA2A()
	case d.Type != MCPTool && d.Server != nil:
		return Invalid("/server", "only a tool of type mcp or a2a has a server")
	case d.Type == AgentTool && d.Agent == "":
		return Invalid("/agent", "a tool of type agent needs an agent")
	case d.Type != AgentTool && d.Agent != "":
		return Invalid("/agent", "only a tool of type agent has an agent")
	}
	return nil
}

// checkA2A validates a tool that is an agent elsewhere.
func (d ToolDefinition) checkA2A() error {
	switch s := d.Server; {
	case s == nil || s.URL == "":
		return Invalid("/server", "a tool of type a2a needs a server with the url of the agent's card, or of its host")
	case s.Tool != "" || len(s.Include)+len(s.Exclude) > 0:
		return Invalid("/server", "the server of a tool of type a2a has a url and tokenEnv alone")
	case d.Parameters != nil:
		return Invalid("/parameters", "a tool of type a2a has no parameters: it takes a message, and the task that it goes on with")
	case d.WorkerWaitMs != nil:
		return Invalid("/workerWaitMs", "a tool of type a2a has no workerWaitMs: an agent that cannot be reached is tried again as retries says")
	case d.Agent != "":
		return Invalid("/agent", "only a tool of type agent has an agent")
	}
	return nil
}

// CheckAgent refuses what would have no effect in a tool that is an agent. A definition that was
// stored before it was refused may have it.
func (d ToolDefinition) CheckAgent() error {
	if d.Type != AgentTool {
		return nil
	}
	for _, field := range []struct {
		name, instead string
		set           bool
	}{
		{"timeoutMs", "limits.wallClockMs", d.TimeoutMs != nil}, {"workerWaitMs", "limits.workerWaitMs", d.WorkerWaitMs != nil}, {"retries", "retries", d.Retries != nil},
	} {
		if field.set {
			return Invalid("/"+field.name, "a tool of type agent has no %s: the agent's own limits bound its run; set %s of agent %s", field.name, field.instead, d.Agent)
		}
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (ToolDefinition) Constraint() string {
	const (
		noServer = `"server":{"type":"null"}`
		noAgent  = `"agent":{"enum":["",null]}`
		none     = `{"type":["array","null"],"maxItems":0}`
	)
	return `{"anyOf":[` +
		`{"properties":{"type":{"enum":["go","nats"]},` + noServer + `,` + noAgent + `}},` +
		`{"required":["server"],"properties":{"type":{"const":"mcp"},"server":{"type":"object"},` + noAgent + `}},` +
		`{"required":["agent"],"properties":{"type":{"const":"agent"},"agent":{"type":"string","minLength":1},` + noServer + `}},` +
		`{"properties":{"type":{"const":"person"},` + noServer + `,` + noAgent + `}},` +
		`{"properties":{"type":{"const":"http"},` + noServer + `,` + noAgent + `}},` +
		`{"required":["server"],"properties":{"type":{"const":"a2a"},"parameters":{"type":"null"},"workerWaitMs":{"type":"null"},` + noAgent + `,` +
		`"server":{"type":"object","required":["url"],"properties":{"tool":{"enum":["",null]},"include":` + none + `,"exclude":` + none + `}}}}]}`
}

// MaxToolPrefix bounds the name of a definition that covers a whole server, which is the
// prefix of its tools' names.
const MaxToolPrefix = 24

// Whole reports whether the definition covers all tools of the server that Include matches,
// rather than one.
func (s ToolServer) Whole() bool { return len(s.Include) > 0 }

// Takes reports whether a definition of a whole server covers the tool that the server calls
// name.
func (s ToolServer) Takes(name string) bool {
	fits := func(pattern string) bool { return fitsStars(pattern, name) }
	return slices.ContainsFunc(s.Include, fits) && !slices.ContainsFunc(s.Exclude, fits)
}

// fitsStars reports whether a text matches a pattern, in which * matches any text.
func fitsStars(pattern, text string) bool {
	first, rest, stars := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !stars {
		return ok && text == ""
	}
	for {
		middle, more, stars := strings.Cut(rest, "*")
		if !stars {
			return strings.HasSuffix(text, middle)
		}
		at := strings.Index(text, middle)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(middle):], more
	}
}

// Check validates what spans more than one field.
func (s ToolServer) Check() error {
	switch {
	case (s.Command == "") == (s.URL == ""):
		return Invalid("", "exactly one of command and url is needed")
	case s.URL != "" && len(s.Args) > 0:
		return Invalid("/args", "only a command has args")
	case s.URL != "" && len(s.Env) > 0:
		return Invalid("/env", "only a command has env; the token for a url is named by tokenEnv")
	case s.Command != "" && s.TokenEnv != "":
		return Invalid("/tokenEnv", "only a url has tokenEnv; name the variable in env")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (ToolServer) Constraint() string {
	const nothing = `{"enum":["",null]}`
	const none = `{"type":["array","null"],"maxItems":0}`
	return `{"anyOf":[` +
		`{"required":["command"],"properties":{"command":{"type":"string","minLength":1},"url":` + nothing + `,"tokenEnv":` + nothing + `}},` +
		`{"required":["url"],"properties":{"url":{"type":"string","minLength":1},"command":` + nothing + `,"args":` + none + `,"env":` + none + `}}]}`
}

// WithDefaults returns the definition with every default filled in, except those that depend
// on the tool's type (parameters, timeout, retries).
func (d ToolDefinition) WithDefaults() ToolDefinition {
	d.Auto, d.Portable = orElse(d.Auto, true), orElse(d.Portable, true)
	d.Idempotent, d.ReadOnly = orElse(d.Idempotent, false), orElse(d.ReadOnly, false)
	if d.Type == PersonTool && d.Question == "" {
		d.Parameters = JSON(personParameters)
	}
	return d
}

// orElse returns v, or a pointer to the default if v is nil. It never returns nil.
func orElse[T any](v *T, usual T) *T {
	if v == nil {
		v = &usual
	}
	return v
}

// ToolResult is the result of a call of a tool. A failure of the work is a result too.
type ToolResult struct {
	Status ToolStatus `json:"status" schema:"required" doc:"How it ended."`
	Result JSON       `json:"result,omitzero" doc:"Of a success."`
	Error  string     `json:"error,omitzero" doc:"Of an error: what happened."`
}

// ReactorType says where a reactor answers.
type ReactorType string

// HTTPReactor is a reactor behind a URL.
const HTTPReactor ReactorType = "http"

// Enum lists the types.
func (ReactorType) Enum() []string { return []string{string(HTTPReactor)} }

// HTTPEndpoint is a URL to which Skein sends signed requests.
type HTTPEndpoint struct {
	URL       string   `json:"url" schema:"required,minLength=1,maxLength=2048" doc:"The address, http or https. No secrets."`
	SecretEnv []string `json:"secretEnv" schema:"required,minItems=1,maxItems=2,items=variable" doc:"The names of the environment variables with the secrets that sign each request: one, or the new and the old one while it is replaced. Names alone: a definition holds no secret."`
}

// ReactorDefinition is a reactor that agents and models name, and that is no process on NATS
// or of the server.
type ReactorDefinition struct {
	Name        string        `json:"name" schema:"required,pattern=name" doc:"The name, by which agents and models refer to it."`
	Description string        `json:"description,omitzero" schema:"maxLength=4096" doc:"What it is for."`
	Type        ReactorType   `json:"type" schema:"required" doc:"http: it answers behind a URL."`
	HTTP        *HTTPEndpoint `json:"http" schema:"required" doc:"Where."`
}

// CheckHTTP validates the endpoint of a tool: one of type http has it, and no other. The path
// of the error is relative to the definition.
func (d ToolDefinition) CheckHTTP() error {
	switch {
	case d.Type == HTTPTool && d.HTTP == nil:
		return Invalid("/http", "a tool of type http needs an endpoint, with a url and secretEnv")
	case d.Type != HTTPTool && d.HTTP != nil:
		return Invalid("/http", "only a tool of type http has an endpoint")
	case d.Type == HTTPTool && d.WorkerWaitMs != nil:
		return Invalid("/workerWaitMs", "a tool of type http has no workerWaitMs: an endpoint that cannot be reached is tried again as retries says")
	}
	return nil
}
