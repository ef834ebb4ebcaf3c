package events

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The events of what describes a thread.
const (
	ProfileChangedType Type = "profile.changed"
	AgentAssignedType  Type = "agent.assigned"
	SkillActivatedType Type = "skill.activated"
)

// ProfileChanged sets the fields that it holds and leaves the others. An empty string clears a
// field.
type ProfileChanged struct {
	Title           *string `json:"title,omitzero" schema:"maxLength=1024" doc:"A title for lists."`
	Archived        *bool   `json:"archived,omitzero" doc:"Hidden from the main list."`
	Draft           *string `json:"draft,omitzero" schema:"maxLength=65536" doc:"An unsent message."`
	AutoSubmitDraft *bool   `json:"autoSubmitDraft,omitzero" doc:"The draft is sent when a run has completed and nothing waits; then both are cleared."`
	AgentMode       *string `json:"agentMode,omitzero" schema:"maxLength=128" doc:"Picks the agent, by the policy modes."`
	MaxTokens       *int64  `json:"maxTokens,omitzero" schema:"minimum=1" doc:"The cap on a run's output tokens in all steps."`
	UserID          *string `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Metadata        JSON    `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields, all of them."`
	Env             JSON    `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	Policy          *Policy `json:"policy,omitzero" doc:"What happens to a message during a run."`

	Rights    *Rights     `json:"rights,omitzero" doc:"Of a draft: the rights with which it sends itself; absent: the whole tenant."`
	TitleFrom TitleSource `json:"titleFrom,omitzero" doc:"Of a title that Skein set by itself: what it was made from. Absent: a caller set it."`
}

// TitleSource says from what Skein made a title.
type TitleSource string

// The sources of titles.
const (
	TitleFromMessage TitleSource = "message" // the beginning of the first message
	TitleFromModel   TitleSource = "model"   // an agent wrote it, after the first answer
)

// Enum lists the sources.
func (TitleSource) Enum() []string { return []string{string(TitleFromMessage), string(TitleFromModel)} }

// MaxTitle is the number of characters that a title by Skein may have.
const MaxTitle = 80

// TitleOf returns the beginning of a text as a title: at most MaxTitle characters, up to the
// end of a word if one ends there, without line breaks, control characters and others that do
// not show. It is empty if nothing of the text shows.
func TitleOf(text string) string {
	var title []rune
	gap := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r), r == '\u2028', r == '\u2029':
			gap = len(title) > 0
			continue
		case unicode.Is(unicode.Cf, r) && r != zwj && r != zwnj, r == unicode.ReplacementChar:
			continue
		}
		if gap {
			title, gap = append(title, ' '), false
		}
		if title = append(title, r); len(title) > MaxTitle {
			return cutTitle(title)
		}
	}
	return strings.Trim(string(title), string([]rune{zwj, zwnj}))
}

// ModelTitle returns the title that a model wrote, without quotation marks around it; "" if it
// cannot be one: it is longer than MaxTitle, or has line breaks or characters that do not show.
func ModelTitle(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, `"`); ok && strings.HasSuffix(inner, `"`) {
		text = strings.TrimSpace(strings.TrimSuffix(inner, `"`))
	}
	if len(text) > MaxTitle*utf8.UTFMax || TitleOf(text) != text {
		return ""
	}
	return text
}

// Joiners of characters: they are part of words and of pictures, and alone show nothing.
const (
	zwnj = '\u200c'
	zwj  = '\u200d'
)

// cutTitle shortens a text by its last word, or if it has only one, between two of its
// characters that do not combine.
func cutTitle(title []rune) string {
	for i := len(title) - 1; i > 0; i-- {
		if title[i] == ' ' {
			return string(title[:i])
		}
	}
	end := MaxTitle
	for end > 1 && (unicode.Is(unicode.M, title[end]) || title[end] == zwj || title[end-1] == zwj) {
		end--
	}
	return string(title[:end])
}

// Policy says what happens to a message that arrives during a run.
type Policy string

// The policies.
const (
	Reject    Policy = "reject"    // it is refused
	Enqueue   Policy = "enqueue"   // it waits until the run has ended; at most MaxQueuedMessages wait
	Interrupt Policy = "interrupt" // the run is aborted, and the message is next
	Steer     Policy = "steer"     // the run's next step sees it
)

// MaxQueuedMessages is the number of messages of a thread that may wait.
const MaxQueuedMessages = 5

// Enum lists the policies.
func (Policy) Enum() []string {
	return []string{string(Reject), string(Enqueue), string(Interrupt), string(Steer)}
}

// AgentAssigned records that another agent took the thread over.
type AgentAssigned struct {
	AgentID string `json:"agentId" schema:"required,pattern=name" doc:"The agent in charge from now on."`
	From    string `json:"from,omitzero" schema:"pattern=name" doc:"The agent before."`
	Reason  string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

// SkillActivated records that a skill was loaded, once for each name.
type SkillActivated struct {
	Name      string `json:"name" schema:"required,pattern=name" doc:"The skill."`
	Arguments JSON   `json:"arguments,omitzero" schema:"object" doc:"The arguments."`
}

type profileRules interface {
	ProfileChanged(e *Event, d ProfileChanged) error
	AgentAssigned(e *Event, d AgentAssigned) error
	SkillActivated(e *Event, d SkillActivated) error
}

func profileEvents() []Row {
	return []Row{
		row(ProfileChangedType, 1, "The thread's title, flags, user, metadata or workspace changed.",
			ProfileChanged{Title: new("Order 42"), Archived: new(true)}, Rules.ProfileChanged),
		row(AgentAssignedType, 1, "Another agent took the thread over.",
			AgentAssigned{AgentID: "billing", From: "triage", Reason: "an invoice"}, Rules.AgentAssigned),
		row(SkillActivatedType, 1, "A skill was loaded.", SkillActivated{Name: "refunds"}, Rules.SkillActivated),
	}
}
