package events

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// The names of the policies. There are no others.
const (
	RetentionPolicy = "retention" // when threads are archived, and when they are cold
	ModesPolicy     = "modes"     // which agent answers in which mode
	TitlesPolicy    = "titles"    // how threads get titles
	HandoffPolicy   = "handoff"   // which agent writes summaries
)

// PolicyDefinition says what Skein does with a tenant's threads on its own. The name says
// which policy it is, and each policy has fields of its own.
type PolicyDefinition struct {
	Name             string `json:"name" schema:"required,pattern=name" doc:"Which policy: retention, modes, titles or handoff."`
	Description      string `json:"description,omitzero" schema:"maxLength=4096" doc:"Why it is so."`
	ArchiveAfterDays *int64 `json:"archiveAfterDays,omitzero" schema:"minimum=1,maximum=36500" doc:"Of retention: threads to which nothing was written for so many days are archived; absent: none are."`
	ColdAfterDays    *int64 `json:"coldAfterDays,omitzero" schema:"minimum=0,maximum=36500" doc:"Of retention: after so many days without a write a thread's documents leave the read models, and its queries read its log; absent: 30; 0: never."`
	Modes            JSON   `json:"modes,omitzero" schema:"object" doc:"Of modes: the name of an agent for each agentMode of threads. It answers a message that names no agent."`
	Off              bool   `json:"off,omitzero" doc:"Of titles: threads get no titles by themselves."`
	Agent            string `json:"agent,omitzero" schema:"pattern=name" doc:"Of handoff: the agent that writes the summary of a thread that is handed off without one. Of titles: the agent that writes the title of a thread after the first answer; absent: the title is the beginning of the first message."`
}

// MaxModes bounds the modes of a tenant.
const MaxModes = 256

// policyFields returns the fields that the definition sets, by the policy that has them.
func (d PolicyDefinition) policyFields() map[string][]string {
	fields := map[string][]string{}
	for _, f := range []struct {
		policy, name string
		set          bool
	}{
		{RetentionPolicy, "archiveAfterDays", d.ArchiveAfterDays != nil}, {RetentionPolicy, "coldAfterDays", d.ColdAfterDays != nil}, {ModesPolicy, "modes", d.Modes != nil}, {TitlesPolicy, "off", d.Off},
		{HandoffPolicy, "agent", d.Agent != "" && d.Name != TitlesPolicy}, // titles have one, too
	} {
		if f.set {
			fields[f.policy] = append(fields[f.policy], f.name)
		}
	}
	return fields
}

// PolicyNames returns the names of the policies, in a fixed order.
func PolicyNames() []string {
	return []string{RetentionPolicy, ModesPolicy, TitlesPolicy, HandoffPolicy}
}

// Check validates the name. CheckFields validates the rest.
func (d PolicyDefinition) Check() error {
	if !slices.Contains(PolicyNames(), d.Name) {
		return Invalid("/name", "there is no policy %q; name it one of %s", d.Name, strings.Join(PolicyNames(), ", "))
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (PolicyDefinition) Constraint() string {
	var names []string
	for _, name := range PolicyNames() {
		names = append(names, `{"properties":{"name":{"const":"`+name+`"}}}`)
	}
	return `{"anyOf":[` + strings.Join(names, ",") + `]}`
}

// CheckFields refuses a field of another policy, and what a field cannot hold.
func (d PolicyDefinition) CheckFields() error {
	fields := d.policyFields()
	for _, policy := range PolicyNames() {
		if set := fields[policy]; policy != d.Name && len(set) > 0 {
			return Invalid("/"+set[0], "is a field of the policy %s, and not of %s", policy, d.Name)
		}
	}
	if d.Name == ModesPolicy && d.Modes == nil {
		return Invalid("/modes", "is needed by the policy %s: an agent for each mode", ModesPolicy)
	}
	if d.Name == TitlesPolicy && d.Off && d.Agent != "" {
		return Invalid("/agent", "writes no titles while they are off; leave out one of the two")
	}
	if d.Name == HandoffPolicy && d.Agent == "" {
		return Invalid("/agent", "is needed by the policy %s: the agent that writes summaries", HandoffPolicy)
	}
	_, err := d.AgentModes()
	return err
}

// AgentModes returns the agent of each mode. The error, if modes is none that a policy may
// have, names the mode at fault.
func (d PolicyDefinition) AgentModes() (map[string]string, error) {
	modes := map[string]string{}
	if d.Modes == nil {
		return modes, nil
	}
	if err := json.Unmarshal(d.Modes, &modes); err != nil {
		return nil, Invalid("/modes", "must be an object with the name of an agent for each mode")
	}
	if len(modes) > MaxModes {
		return nil, Invalid("/modes", "has %d modes; at most %d are allowed", len(modes), MaxModes)
	}
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		switch {
		case strings.TrimSpace(mode) == "" || len(mode) > 128:
			return nil, Invalid("/modes", "has the mode %.40q; one has 1 to 128 bytes, and not only spaces", mode)
		case !Pattern(PatternName).MatchString(modes[mode]):
			return nil, Invalid("/modes", "has the agent %.40q for the mode %.40q, which is no name", modes[mode], mode)
		}
	}
	return modes, nil
}

// WebhookDefinition says which of the tenant's events are sent to a URL, as they are
// committed, in order per thread.
type WebhookDefinition struct {
	Name        string        `json:"name" schema:"required,pattern=name" doc:"The name; every request has it in the header Skein-Webhook."`
	Description string        `json:"description,omitzero" schema:"maxLength=4096" doc:"What it is for."`
	HTTP        *HTTPEndpoint `json:"http" schema:"required" doc:"Where the events are sent."`
	Types       []string      `json:"types,omitempty" schema:"maxItems=64" doc:"Only events of these types; item.* takes all of an entity."`
	Agents      []string      `json:"agents,omitempty" schema:"maxItems=64,items=name" doc:"Only events of threads of which one of these agents is in charge."`
	KeyPrefix   string        `json:"keyPrefix,omitzero" schema:"maxLength=512" doc:"Only events of threads whose key begins with this."`
	Contents    bool          `json:"contents,omitzero" doc:"Send the data of events, too, unless their thread was purged; false if absent: only what happened, and where."`
}

// Takes reports whether the webhook is of events of a type.
func (d WebhookDefinition) Takes(t Type) bool {
	return len(d.Types) == 0 || slices.ContainsFunc(d.Types, func(one string) bool {
		entity, all := strings.CutSuffix(one, "*")
		return one == string(t) || all && strings.HasPrefix(string(t), entity)
	})
}
