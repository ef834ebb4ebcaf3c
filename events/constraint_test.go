package events

import (
	"fmt"
	"strings"
	"testing"
)

// refusedAt returns the path of a refusal, its code if it names none, and "" if there is none.
func refusedAt(err error) string {
	if err == nil {
		return ""
	}
	e := AsError(err)
	if e.Code != InvalidRequest || e.Details == nil {
		return string(e.Code)
	}
	return e.Details.Path + "!"
}

func ref[T any](v T) *T { return &v }

// What a tool of one type has and another has not is refused by its field.
func TestToolDefinition_FieldsOfItsType(t *testing.T) {
	person := ToolDefinition{Name: "ask", Type: PersonTool}
	question := person
	question.Question = "Is {{what}} all right?"
	for name, c := range map[string]struct {
		of     ToolDefinition
		change func(d *ToolDefinition)
		want   string
	}{
		"a person, bare":              {person, func(*ToolDefinition) {}, ""},
		"a person, asked a question":  {question, func(d *ToolDefinition) { d.Parameters = JSON(`{}`) }, ""},
		"a person, parameters alone":  {person, func(d *ToolDefinition) { d.Parameters = JSON(`{}`) }, "/parameters!"},
		"a person, auto":              {person, func(d *ToolDefinition) { d.Auto = ref(true) }, "/auto!"},
		"a person, idempotent":        {person, func(d *ToolDefinition) { d.Idempotent = ref(true) }, "/idempotent!"},
		"a person, read only":         {person, func(d *ToolDefinition) { d.ReadOnly = ref(true) }, "/readOnly!"},
		"a person, timeout":           {person, func(d *ToolDefinition) { d.TimeoutMs = ref(int64(1)) }, "/timeoutMs!"},
		"a person, worker wait":       {person, func(d *ToolDefinition) { d.WorkerWaitMs = ref(int64(1)) }, "/workerWaitMs!"},
		"a person, retries":           {person, func(d *ToolDefinition) { d.Retries = &Retries{} }, "/retries!"},
		"a person, largest answer":    {person, func(d *ToolDefinition) { d.Answer = make(JSON, MaxAnswerSchema) }, ""},
		"a person, too large answer":  {person, func(d *ToolDefinition) { d.Answer = make(JSON, MaxAnswerSchema+1) }, string(PayloadTooLarge)},
		"a worker, bare":              {ToolDefinition{}, func(*ToolDefinition) {}, ""},
		"a worker, question":          {ToolDefinition{}, func(d *ToolDefinition) { d.Question = "?" }, "/question!"},
		"a worker, answer":            {ToolDefinition{}, func(d *ToolDefinition) { d.Answer = JSON(`{}`) }, "/answer!"},
		"a worker, parameters, retry": {ToolDefinition{}, func(d *ToolDefinition) { d.Parameters, d.Auto, d.Retries = JSON(`{}`), ref(true), &Retries{} }, ""},
	} {
		d := c.of
		c.change(&d)
		if got := refusedAt(d.CheckPerson()); got != c.want {
			t.Errorf("%s: refused at %q, not at %q", name, got, c.want)
		}
	}
	agent := ToolDefinition{Type: AgentTool, Agent: "clerk"}
	for name, c := range map[string]struct {
		change func(d *ToolDefinition)
		want   string
	}{
		"bare":        {func(*ToolDefinition) {}, ""},
		"an approval": {func(d *ToolDefinition) { d.Auto, d.Parameters = ref(false), JSON(`{}`) }, ""},
		"timeout":     {func(d *ToolDefinition) { d.TimeoutMs = ref(int64(1)) }, "/timeoutMs!"},
		"worker wait": {func(d *ToolDefinition) { d.WorkerWaitMs = ref(int64(0)) }, "/workerWaitMs!"},
		"retries":     {func(d *ToolDefinition) { d.Retries = &Retries{} }, "/retries!"},
		"of another":  {func(d *ToolDefinition) { d.Type, d.TimeoutMs = NATSTool, ref(int64(1)) }, ""},
	} {
		d := agent
		c.change(&d)
		if got := refusedAt(d.CheckAgent()); got != c.want {
			t.Errorf("an agent, %s: refused at %q, not at %q", name, got, c.want)
		}
	}
	endpoint := &HTTPEndpoint{URL: "https://tools.example"}
	for name, c := range map[string]struct {
		of   ToolDefinition
		want string
	}{
		"http":              {ToolDefinition{Type: HTTPTool, HTTP: endpoint}, ""},
		"http, nowhere":     {ToolDefinition{Type: HTTPTool}, "/http!"},
		"http, worker wait": {ToolDefinition{Type: HTTPTool, HTTP: endpoint, WorkerWaitMs: ref(int64(1))}, "/workerWaitMs!"},
		"another, endpoint": {ToolDefinition{HTTP: endpoint}, "/http!"},
		"another, wait":     {ToolDefinition{WorkerWaitMs: ref(int64(1))}, ""},
	} {
		if got := refusedAt(c.of.CheckHTTP()); got != c.want {
			t.Errorf("%s: refused at %q, not at %q", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		of   ToolDefinition
		want string
	}{
		"a person": {person, personParameters}, "a person, asked a question": {question, ""}, "a worker": {ToolDefinition{}, ""},
	} {
		if got := string(c.of.WithDefaults().Parameters); got != c.want {
			t.Errorf("%s takes %s, not %s", name, got, c.want)
		}
	}
}

// A person is asked the tool's question with the arguments in it, or else the model's.
func TestToolDefinition_Ask(t *testing.T) {
	long := strings.Repeat("日", maxQuestion/3) // one byte less than may be asked
	for name, c := range map[string]struct{ question, arguments, want string }{
		"the model's":              {"", `{"question":"Shall I?"}`, "Shall I?"},
		"the tool's":               {"Book {{flight}} for {{n}}?", `{"flight":"HA1","n":2,"x":0}`, "Book HA1 for 2?"},
		"a value is missing":       {"Book {{flight}}?", `{"n":2}`, "Book {{flight}}?"},
		"a value is null":          {"Book {{flight}}?", `{"flight":null}`, "Book {{flight}}?"},
		"no arguments":             {"Book {{flight}}?", `"HA1"`, "Book {{flight}}?"},
		"no JSON":                  {"Book {{flight}}?", `{"flight":`, "Book {{flight}}?"},
		"a value is too large":     {"Book {{flight}}?", `{"flight":"` + strings.Repeat("x", MaxVariableBytes+1) + `"}`, "Book {{flight}}?"},
		"as long as it may be":     {"", `{"question":"` + long + `x"}`, long + "x"},
		"cut between two letters":  {long + "{{x}}", `{"x":"日"}`, long + "..."},
		"two placeholders are one": {"{{a}} and {{a}}", `{"a":"b"}`, "b and b"},
	} {
		if got := (ToolDefinition{Name: "ask", Question: c.question}).Ask(JSON(c.arguments)); got != c.want {
			t.Errorf("%s: %.60q of %d bytes, not %.60q of %d", name, got, len(got), c.want, len(c.want))
		}
	}
}

// The schema of an answer becomes that of a field, with what it refers to in itself.
func TestAnswerSchema(t *testing.T) {
	for answer, want := range map[string]string{
		`{"$schema":"x","enum":[1]}`: `{"type":"object","required":["answer"],"properties":{"answer":{"$id":"urn:skein:answer","enum":[1]}}}`,
		`{"$id":"mine"}`:             "/$id!",
		`["a"]`:                      "!",
	} {
		got, err := AnswerSchema(JSON(answer))
		if err != nil {
			got = JSON(refusedAt(err))
		}
		if string(got) != want {
			t.Errorf("%s: %s, not %s", answer, got, want)
		}
	}
}

// A policy has its own fields, and what it needs.
func TestPolicyDefinition_Fields(t *testing.T) {
	modes := func(n int) JSON {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"mode %d":"agent"`, i))
		}
		return JSON("{" + strings.Join(list, ",") + "}")
	}
	for name, c := range map[string]struct {
		of   PolicyDefinition
		want string
	}{
		"retention":                 {PolicyDefinition{Name: RetentionPolicy, ArchiveAfterDays: ref(int64(1)), ColdAfterDays: ref(int64(1))}, ""},
		"retention, modes":          {PolicyDefinition{Name: RetentionPolicy, Modes: modes(1)}, "/modes!"},
		"retention, off":            {PolicyDefinition{Name: RetentionPolicy, Off: true}, "/off!"},
		"retention, agent":          {PolicyDefinition{Name: RetentionPolicy, Agent: "a"}, "/agent!"},
		"titles":                    {PolicyDefinition{Name: TitlesPolicy, Agent: "a"}, ""},
		"titles, off":               {PolicyDefinition{Name: TitlesPolicy, Off: true}, ""},
		"titles, off, agent":        {PolicyDefinition{Name: TitlesPolicy, Off: true, Agent: "a"}, "/agent!"},
		"titles, archive":           {PolicyDefinition{Name: TitlesPolicy, ArchiveAfterDays: ref(int64(1))}, "/archiveAfterDays!"},
		"titles, cold":              {PolicyDefinition{Name: TitlesPolicy, ColdAfterDays: ref(int64(1))}, "/coldAfterDays!"},
		"handoff":                   {PolicyDefinition{Name: HandoffPolicy, Agent: "a"}, ""},
		"handoff, no agent":         {PolicyDefinition{Name: HandoffPolicy}, "/agent!"},
		"modes":                     {PolicyDefinition{Name: ModesPolicy, Modes: modes(MaxModes)}, ""},
		"modes, none":               {PolicyDefinition{Name: ModesPolicy}, "/modes!"},
		"modes, too many":           {PolicyDefinition{Name: ModesPolicy, Modes: modes(MaxModes + 1)}, "/modes!"},
		"modes, a list":             {PolicyDefinition{Name: ModesPolicy, Modes: JSON(`["a"]`)}, "/modes!"},
		"modes, of spaces":          {PolicyDefinition{Name: ModesPolicy, Modes: JSON(`{" ":"a"}`)}, "/modes!"},
		"modes, a long one":         {PolicyDefinition{Name: ModesPolicy, Modes: JSON(`{"` + strings.Repeat("m", 128) + `":"a"}`)}, ""},
		"modes, one that is long":   {PolicyDefinition{Name: ModesPolicy, Modes: JSON(`{"` + strings.Repeat("m", 129) + `":"a"}`)}, "/modes!"},
		"modes, an agent's no name": {PolicyDefinition{Name: ModesPolicy, Modes: JSON(`{"m":"no name"}`)}, "/modes!"},
	} {
		if got := refusedAt(c.of.CheckFields()); got != c.want {
			t.Errorf("%s: refused at %q, not at %q", name, got, c.want)
		}
	}
	if got, err := (PolicyDefinition{Modes: JSON(`{"fast":"small"}`)}).AgentModes(); err != nil || len(got) != 1 || got["fast"] != "small" {
		t.Errorf("modes: %v, %v", got, err)
	}
}

// A webhook takes all types, those that it names, or all of an entity.
func TestWebhookDefinition_Takes(t *testing.T) {
	for types, want := range map[string]string{
		"": "item.created run.claimed", "item.created": "item.created", "item.*": "item.created", "item": "", "run.*,item.created": "item.created run.claimed", "step.*": "",
	} {
		d := WebhookDefinition{}
		if types != "" {
			d.Types = strings.Split(types, ",")
		}
		var got []string
		for _, typ := range []Type{ItemCreatedType, RunClaimedType} {
			if d.Takes(typ) {
				got = append(got, string(typ))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q takes %v, not %s", types, got, want)
		}
	}
}

// What spans several fields of a command is refused by the field at fault.
func TestCommands_FieldsTogether(t *testing.T) {
	value := JSON(`1`)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"fork, index":       {ForkThread{MessageIndex: ref(int64(0))}.Check(), ""},
		"fork, item":        {ForkThread{ItemID: "itm_1"}.Check(), ""},
		"fork, version":     {ForkThread{Version: ref(int64(1))}.Check(), ""},
		"fork, nowhere":     {ForkThread{}.Check(), "!"},
		"fork, twice":       {ForkThread{ItemID: "itm_1", Version: ref(int64(1))}.Check(), "!"},
		"fork, index twice": {ForkThread{ItemID: "itm_1", MessageIndex: ref(int64(1))}.Check(), "!"},

		"summary":           {CheckSummary(strings.Repeat("日", MaxSummary)), ""},
		"summary, too long": {CheckSummary(strings.Repeat("s", MaxSummary+1)), "/summary!"},
		"summary, blank":    {CheckSummary(" \n"), "/summary!"},

		"set":               {StateOperation{Op: SetOp, Key: "k", Value: value}.Check(), ""},
		"set, no key":       {StateOperation{Op: SetOp, Value: value}.Check(), "/key!"},
		"set, no value":     {StateOperation{Op: SetOp, Key: "k"}.Check(), "/value!"},
		"set, max":          {StateOperation{Op: SetOp, Key: "k", Value: value, Max: 1}.Check(), "/max!"},
		"push":              {StateOperation{Op: PushOp, Key: "k", Value: value, Max: 1}.Check(), ""},
		"push, no value":    {StateOperation{Op: PushOp, Key: "k"}.Check(), "/value!"},
		"delete":            {StateOperation{Op: DeleteOp, Key: "k"}.Check(), ""},
		"delete, no key":    {StateOperation{Op: DeleteOp}.Check(), "/key!"},
		"delete, value":     {StateOperation{Op: DeleteOp, Key: "k", Value: value}.Check(), "/value!"},
		"clear":             {StateOperation{Op: ClearOp}.Check(), ""},
		"clear, key":        {StateOperation{Op: ClearOp, Key: "k"}.Check(), "/key!"},
		"merge":             {MergeState{Listeners: []string{"app"}}.Check(), ""},
		"merge, listener":   {MergeState{Listeners: []string{"app", "no name"}}.Check(), "/listeners/1!"},
		"merge, user":       {MergeState{UserID: "u"}.Check(), "/userId!"},
		"merge, new user":   {MergeState{UserID: "u", Create: true}.Check(), ""},
		"session":           {MergeSession{}.Check(), ""},
		"session, error":    {MergeSession{ErrorText: "e"}.Check(), "/errorText!"},
		"session, failed":   {MergeSession{ErrorText: "e", Completed: true}.Check(), ""},
		"session, done":     {MergeSession{Completed: true}.Check(), ""},
		"no settings":       {(*RunSettings)(nil).CheckTools(), ""},
		"settings":          {(&RunSettings{Tools: []CallerTool{{Name: "a"}, {Name: "b"}}}).CheckTools(), ""},
		"settings, a twice": {(&RunSettings{Tools: []CallerTool{{Name: "a"}, {Name: "b"}, {Name: "a"}}}).CheckTools(), "/settings/tools!"},
	} {
		if got := refusedAt(c.err); got != c.want {
			t.Errorf("%s: refused at %q, not at %q", name, got, c.want)
		}
	}
}
