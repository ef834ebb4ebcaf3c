package events

import (
	"strings"
	"unicode/utf8"
)

// MaxSummary is the number of characters that the summary of a handoff may have.
const MaxSummary = 65536

// HandoffThread continues a thread in a new one, which knows only a summary.
type HandoffThread struct {
	AgentID string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent in charge of the new thread; the thread's own if absent. Without a summary, it writes one first."`
	Summary string `json:"summary,omitzero" schema:"maxLength=65536" doc:"What the new thread is to know: its first message. If absent, an agent writes it: agentId, or else the agent of the policy handoff."`
	Comment string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What the thread is handed off for."`
	Key     string `json:"key,omitzero" schema:"pattern=key" doc:"The new thread's public name, unique in the tenant."`
}

// Handoff says what becomes of the summary that a run writes: it is the first message of a new
// thread, which is created when the run ends.
type Handoff struct {
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that is to be created."`
	AgentID  string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that is to be in charge of it; that of the thread if absent."`
	Key      string `json:"key,omitzero" schema:"pattern=key" doc:"Its public name."`
	Comment  string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What the thread is handed off for."`
}

// CheckSummary refuses a summary that says nothing, or is too long.
func CheckSummary(text string) error {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return Invalid("/summary", "a summary needs a text")
	case n > MaxSummary:
		return Invalid("/summary", "a summary has at most %d characters, and this one has %d", MaxSummary, n)
	}
	return nil
}

func handoffCommands() []Command {
	handoff := command("thread.handoff", "Continues a thread in a new one, which begins with a summary, and relates the two. Without a summary, an agent writes it first.",
		HandoffThread{Summary: "Order 42 was lost; the customer wants the money back.", Comment: "the refund"},
		RelationshipAddedType, ThreadCreatedType, ContextCreatedType, KeyClaimedType, ItemCreatedType,
		ContextResolvedType, ThreadStatusChangedType, ContextStatusChangedType, ExecutionCreatedType, RunRequestedType)
	handoff.Single = true
	return []Command{handoff}
}
