package openaichat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Conversation is one conversation, checked: every result has its call.
type Conversation struct {
	ID       string
	Title    string
	Metadata events.JSON // an object, or nothing
	Messages []Message
}

// Message is one message of a conversation.
type Message struct {
	Index   int    // in the conversation, from 0
	At      string // when it was written, in the form of events; empty if the file does not say
	Role    events.Role
	Result  bool          // a tool's answer; it has no role
	Name    string        // of who speaks, if the message says it
	Content []events.JSON // parts, as EK 4.4 has them
	Calls   []Call        // of an assistant

	CallID  string      // of a result
	Output  events.JSON // of a result
	IsError bool        // of a result
}

// Call is one call of a tool.
type Call struct {
	ID        string
	Name      string
	Arguments events.JSON // JSON; text that is not JSON is a JSON string
}

// Limits of one conversation. What is larger was not meant to be imported.
const (
	MaxBytes    = 64 << 20 // of one conversation's JSON
	maxMessages = 100_000
	maxKey      = 256 // letters of a thread's key
)

// KeyPrefix begins the key of an imported thread: an id must leave room for it.
const KeyPrefix = "import:"

// wire is a conversation as JSON has it.
type wire struct {
	ID       events.JSON     `json:"id"`
	Title    string          `json:"title"`
	Metadata events.JSON     `json:"metadata"`
	Messages *[]*wireMessage `json:"messages"`

	times
	Unknown map[string]events.JSON `json:",embed"`
}

type wireMessage struct {
	ID           events.JSON `json:"id"` // Skein has ids of its own
	Role         string      `json:"role"`
	Content      events.JSON `json:"content"`
	Name         string      `json:"name"`
	Refusal      *string     `json:"refusal"`
	ToolCalls    []wireCall  `json:"tool_calls"`
	ToolCallID   string      `json:"tool_call_id"`
	IsError      bool        `json:"is_error"`
	FunctionCall events.JSON `json:"function_call"`

	times
	Unknown map[string]events.JSON `json:",embed"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function *struct {
		Name      string      `json:"name"`
		Arguments events.JSON `json:"arguments"`
	} `json:"function"`
	Custom *struct {
		Name  string      `json:"name"`
		Input events.JSON `json:"input"`
	} `json:"custom"`
	Index   *int64                 `json:"index"` // of a call that was streamed
	Unknown map[string]events.JSON `json:",embed"`
}

// Parse reads one conversation. The error says in one line what is wrong with it. A field that
// holds something and is not read is an error, except those to ignore.
func Parse(raw []byte, ignore ...string) (*Conversation, error) {
	if len(raw) > MaxBytes {
		return nil, tooLong()
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("broken UTF-8")
	}
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, oneLine(err)
	}
	id, err := w.id()
	if err != nil {
		return nil, err
	}
	if w.Messages == nil {
		return nil, errors.New("no messages")
	}
	if n := len(*w.Messages); n > maxMessages {
		return nil, fmt.Errorf("%d messages; at most %d are allowed", n, maxMessages)
	}
	c := &Conversation{ID: id, Title: w.Title, Messages: make([]Message, len(*w.Messages))}
	at, err := w.times.read()
	if err == nil {
		err = checkUnread(w.Unknown, ignore)
	}
	if err != nil {
		return nil, err
	}
	switch jsontext.Value(w.Metadata).Kind() {
	case 0, 'n':
	case '{':
		c.Metadata = w.Metadata
	default:
		return nil, errors.New("its metadata is an object")
	}
	open := map[string]bool{} // calls that wait for their result
	for i, m := range *w.Messages {
		if m == nil {
			return nil, fmt.Errorf("message %d is null", i+1)
		}
		if err := m.read(&c.Messages[i], open, ignore); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		c.Messages[i].Index, c.Messages[i].At = i, cmp.Or(c.Messages[i].At, at)
	}
	return c, nil
}

func tooLong() error { return fmt.Errorf("over %d MiB", MaxBytes>>20) }

// oneLine returns an error of the JSON library without the names of Go types.
func oneLine(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return fmt.Errorf("%s is a JSON %s, which does not belong there", pointer(semantic.JSONPointer), kind(semantic.JSONKind))
	}
	return fmt.Errorf("not JSON: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "jsontext: ")), " "))
}

func pointer(p jsontext.Pointer) string {
	if p == "" {
		return "the conversation"
	}
	return string(p)
}

func kind(k jsontext.Kind) string {
	if k == 0 {
		return "value"
	}
	return k.String()
}

// id returns the conversation's id: a string, or a number's digits.
func (w *wire) id() (string, error) {
	var id string
	switch jsontext.Value(w.ID).Kind() {
	case '"':
		if err := json.Unmarshal(w.ID, &id); err != nil {
			return "", oneLine(err)
		}
	case '0':
		id = string(w.ID)
	}
	switch {
	case id == "":
		return "", errors.New("no id")
	case utf8.RuneCountInString(KeyPrefix+id) > maxKey || !events.ValidKey(KeyPrefix+id):
		return "", fmt.Errorf("an id has at most %d letters, and no control characters", maxKey-len(KeyPrefix))
	}
	return id, nil
}

// read checks a message and fills m.
func (w *wireMessage) read(m *Message, open map[string]bool, ignore []string) error {
	if jsontext.Value(w.FunctionCall).Kind() == '{' {
		return errors.New("function_call is of an old format; give tool_calls")
	}
	if w.Role != "assistant" && len(w.ToolCalls) > 0 {
		return fmt.Errorf("a message of the role %.32q has tool_calls", w.Role)
	}
	if err := checkUnread(w.Unknown, ignore); err != nil {
		return err
	}
	var err error
	if m.At, err = w.times.read(); err != nil {
		return err
	}
	if w.Role != "tool" && !spoken(w.Content) && len(w.ToolCalls) == 0 && w.Refusal == nil && known(w.Role) {
		return errors.New("it has neither content nor calls")
	}
	m.Name = w.Name
	switch w.Role {
	case "system", "developer", "user":
		m.Role = events.Role(w.Role)
		return w.parts(m, events.InputText)
	case "assistant":
		m.Role = events.Assistant
		for i, call := range w.ToolCalls {
			c, err := call.read(ignore)
			if err != nil {
				return fmt.Errorf("call %d: %w", i+1, err)
			}
			if open[c.ID] {
				return fmt.Errorf("the call id %.64q is used twice", c.ID)
			}
			open[c.ID] = true
			m.Calls = append(m.Calls, c)
		}
		return w.parts(m, events.OutputText)
	case "tool":
		if !open[w.ToolCallID] {
			return fmt.Errorf("the result of the call %.64q has no call before it", w.ToolCallID)
		}
		delete(open, w.ToolCallID)
		m.Result, m.CallID = true, w.ToolCallID
		return w.result(m)
	case "":
		return errors.New("no role")
	}
	return fmt.Errorf("the role %.32q is not known", w.Role)
}

func known(role string) bool {
	return slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, role)
}

func (w *wireCall) read(ignore []string) (Call, error) {
	c := Call{ID: w.ID}
	if err := checkUnread(w.Unknown, ignore); err != nil {
		return c, err
	}
	var arguments events.JSON
	switch {
	case w.Function != nil:
		c.Name, arguments = w.Function.Name, w.Function.Arguments
	case w.Custom != nil:
		c.Name, arguments = w.Custom.Name, w.Custom.Input
	default:
		return c, errors.New("no function")
	}
	switch {
	case c.ID == "" || utf8.RuneCountInString(c.ID) > 256:
		return c, errors.New("its id must have 1 to 256 letters")
	case c.Name == "" || utf8.RuneCountInString(ToolPart+c.Name) > 128:
		return c, fmt.Errorf("its name must have 1 to %d letters", 128-len(ToolPart))
	}
	c.Arguments = arguments
	if arguments == nil {
		c.Arguments = events.JSON(`""`)
	}
	var text string
	if jsontext.Value(arguments).Kind() == '"' && json.Unmarshal(arguments, &text) == nil {
		if inner := events.JSON(text); jsontext.Value(inner).IsValid() {
			_ = (*jsontext.Value)(&inner).Compact() // valid: cannot fail
			c.Arguments = inner
		}
	}
	return c, nil
}
