package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Skill is a text that a model loads when it needs it.
type Skill struct {
	Name        string
	Description string
	Text        string
	Tools       []string // the tools that need it; for a whole server, the prefix of its tools' names
}

// gates reports whether a tool needs the skill.
func (s *Skill) gates(tool string) bool {
	return slices.ContainsFunc(s.Tools, func(name string) bool { return tool == name || strings.HasPrefix(tool, name+"__") })
}

// skillTool is the tool by which a model loads a skill. Its result is the skill's text, and the
// skill becomes active when the result is recorded.
type skillTool struct{ skills []Skill }

// Spec implements Tool.
func (t skillTool) Spec() ToolSpec {
	names := make([]string, len(t.skills))
	for i, s := range t.skills {
		names[i] = s.Name
	}
	return ToolSpec{
		Name: events.SkillTool, Description: "Loads a skill: returns its instructions, and lets the tools work that need it.", ReadOnly: true, Idempotent: true,
		Parameters: object("type", "object", "additionalProperties", false, "required", []string{"name"}, "properties", object(
			"name", object("type", "string", "enum", names, "description", "The skill."),
			"arguments", object("type", "object", "description", "What the skill is loaded for, if it says that it takes arguments."),
		)),
	}
}

// Call implements Tool.
func (t skillTool) Call(_ context.Context, in *ToolInput) (ToolResult, error) {
	asked, err := askedSkill(in.Arguments)
	if err != nil {
		return Failed(err.Error()), nil
	}
	for _, s := range t.skills {
		if s.Name == asked.Name {
			return Done(object("skill", s.Name, "text", s.Text)), nil
		}
	}
	return Failed("there is no skill " + clip(asked.Name)), nil // its arguments were checked
}

// askedSkill returns the skill that a call asks for.
func askedSkill(arguments events.JSON) (*events.ActivateSkill, error) {
	var asked events.ActivateSkill
	if err := json.Unmarshal(arguments, &asked); err != nil {
		return nil, fmt.Errorf("the arguments do not fit: %w", err)
	}
	if n := len(asked.Arguments); n > events.MaxSkillArguments {
		return nil, fmt.Errorf("the arguments of the skill have %d bytes; the limit is %d", n, events.MaxSkillArguments)
	}
	return &asked, nil
}

// loaded returns the skill that a call of a tool has loaded, nil if it is none.
func loaded(tool Tool, in *ToolInput, result ToolResult) *events.ActivateSkill {
	if _, ok := tool.(skillTool); !ok || result.Status != Success {
		return nil
	}
	asked, err := askedSkill(in.Arguments)
	if err != nil {
		return nil
	}
	return asked
}

// locked returns the result of a call if its tool needs a skill that is not active; nil if the
// call can be made. If several skills name the tool, one active skill is enough.
func (t stepCalls) locked(side *Side, tool string) *ToolResult {
	t.live.talking.Lock()
	defer t.live.talking.Unlock()
	var keys []string
	for i := range side.Skills {
		s := &side.Skills[i]
		if !s.gates(tool) {
			continue
		}
		if _, active := t.talk.Skills[s.Name]; active {
			return nil
		}
		keys = append(keys, s.Name)
	}
	if keys == nil {
		return nil
	}
	refused := Failed(fmt.Sprintf("the tool %s needs the skill %s, which is not active; call the tool %s with %s, read what it says, and call this one again",
		clip(tool), strings.Join(keys, " or "), events.SkillTool, object("name", keys[0])))
	return &refused
}

// skillsNote returns the note to the model about skills: the list of skills, and the texts of
// those that a person has activated. Texts that the model has loaded itself are in its
// conversation.
func (t reactorCall) skillsNote(side *Side) string {
	if len(side.Skills) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Skills are instructions for a kind of work. Before such work, load the skill: call the tool %s with its name.\n", events.SkillTool)
	for _, s := range side.Skills {
		fmt.Fprintf(&b, "- %s: %s", s.Name, s.Description)
		if len(s.Tools) > 0 {
			fmt.Fprintf(&b, " (needed by the tools %s)", strings.Join(s.Tools, ", "))
		}
		b.WriteByte('\n')
	}
	for _, s := range side.Skills {
		if byCaller, active := t.talk.Skills[s.Name]; active && byCaller {
			fmt.Fprintf(&b, "\nThe skill %s is active:\n%s\n", s.Name, s.Text)
		}
	}
	return b.String()
}
