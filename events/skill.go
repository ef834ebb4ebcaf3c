package events

// SkillDefinition is a text that a model loads when it needs it, with the tools that work only
// then.
type SkillDefinition struct {
	Name        string   `json:"name" schema:"required,pattern=name" doc:"The name, by which agents refer to it, and models load it."`
	Description string   `json:"description" schema:"required,minLength=1,maxLength=4096" doc:"What it is for and when to load it, for the model."`
	Text        string   `json:"text" schema:"required,minLength=1,maxLength=32768" doc:"What the model is told when it loads the skill."`
	Tools       []string `json:"tools,omitempty" schema:"maxItems=256,items=tool" doc:"The tools of the agent that need it: their calls are refused until it is active. One that several of the agent's skills name needs any of them."`
}

// ActivateSkill activates a skill on a thread.
type ActivateSkill struct {
	Name      string `json:"name" schema:"required,pattern=name" doc:"The skill."`
	Arguments JSON   `json:"arguments,omitzero" schema:"object" doc:"The arguments, at most 16 KiB. Those of the first activation stay."`
}

// MaxSkillArguments bounds the arguments with which a skill is activated, in bytes of JSON.
const MaxSkillArguments = 16 << 10

// SkillTool is the name of the tool by which models load skills.
const SkillTool = "skill"

// ActivatedSkill is a skill that is active on a thread.
type ActivatedSkill struct {
	Name      string `json:"name" schema:"required,pattern=name" doc:"The skill."`
	Arguments JSON   `json:"arguments,omitzero" schema:"object" doc:"The arguments of its first activation."`
}

func skillCommands() []Command {
	return []Command{command("skill.activate", "Activates a skill on a thread. A skill that is active stays as it is.",
		ActivateSkill{Name: "refunds"}, SkillActivatedType)}
}
