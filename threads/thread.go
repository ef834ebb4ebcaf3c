package threads

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
)

// The parts of a thread, as queries return them.
type (
	Thread       = events.ThreadDocument
	Message      = events.DocumentMessage
	Block        = events.DocumentBlock
	Relationship = events.DocumentRelation
	Skill        = events.DocumentSkill
	Queued       = events.DocumentQueued
	Summary      = events.ThreadSummary
)

// NewID returns the id of a new thread: T- and a random UUID.
func NewID() string { return "T-" + uuid.NewString() }

// ValidID reports whether id is T- and a UUID, of any version and in letters of either case.
func ValidID(id string) bool {
	return strings.HasPrefix(id, "T-") && len(id) == 38 && events.Pattern(events.PatternUUID).MatchString(id[2:])
}

// NewThread returns a thread that has nothing yet. Save stores it.
func NewThread(id string) *Thread {
	return &Thread{ID: id, Created: time.Now().UnixMilli(), Messages: []Message{}}
}

// ForkTitle returns the title of a fork of a thread with that title.
func ForkTitle(title string) string { return events.ForkTitle(title) }

// Text returns a block of text.
func Text(text string) Block { return Block{Type: events.TextBlock, Text: &text} }

// UserMessage returns a message of a user.
func UserMessage(text string) Message { return message(events.DocumentUser, text) }

// AssistantMessage returns a message of an assistant.
func AssistantMessage(text string) Message { return message(events.DocumentAssistant, text) }

// InfoMessage returns a message of the system.
func InfoMessage(text string) Message { return message(events.DocumentInfo, text) }

func message(role events.DocumentRole, text string) Message {
	return Message{Role: role, Content: []Block{Text(text)}}
}
