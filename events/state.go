package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The events of a thread's key-value state, besides state.changed and state.closed, which are
// of its context. See docs/state.md.
const (
	StateRenewedType  Type = "state.renewed"
	StateReleasedType Type = "state.released"
)

// LifeKeyPrefix begins the key of the context of a life of a thread's state: the life's number
// follows.
const LifeKeyPrefix = "skein.state."

// Times of lives.
const (
	// DefaultIdle is how long after the last activity a life ends, if nobody says otherwise.
	DefaultIdle = time.Hour
	// ListenerPatience is how long listeners have after the end of a life. Then its values are
	// cleared without them.
	ListenerPatience = 72 * time.Hour
)

// RenewEvery returns how often the end of a life of that idle time moves at most: a life ends
// up to twice that much later than its idle time, and never earlier.
func RenewEvery(idle time.Duration) time.Duration { return min(time.Minute, idle/10) }

// StateRenewed records until when a life of a thread's state lasts without further activity,
// and who listens to its end. The first one of a life opens it. Changes of the values move the
// end too, without this event.
type StateRenewed struct {
	Life        int64    `json:"life" schema:"required,minimum=1" doc:"The life, from 1."`
	Until       string   `json:"until" schema:"required,pattern=time" doc:"When it ends, without further activity."`
	IdleSeconds int64    `json:"idleSeconds" schema:"required,minimum=1" doc:"How long after the last activity it ends."`
	Listeners   []string `json:"listeners,omitempty" schema:"maxItems=16" doc:"The applications that listen to its end."`
}

// StateReleased records that an application has done what it does at the end of a life, or
// that it has given up.
type StateReleased struct {
	Life      int64  `json:"life" schema:"required,minimum=1" doc:"The life."`
	Listener  string `json:"listener" schema:"required,pattern=name" doc:"The application."`
	ErrorText string `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why its listener failed for good, if it did."`
}

// StateOp is the name of an operation on a key-value state.
type StateOp string

// The operations.
const (
	SetOp    StateOp = "set"
	DeleteOp StateOp = "delete"
	PushOp   StateOp = "push"
	ClearOp  StateOp = "clear"
)

// Enum lists the operations.
func (StateOp) Enum() []string {
	return []string{string(SetOp), string(DeleteOp), string(PushOp), string(ClearOp)}
}

// StateOperation is one operation on a key-value state.
type StateOperation struct {
	Op    StateOp `json:"op" schema:"required" doc:"push appends to the list of a key; clear removes all keys."`
	Key   string  `json:"key,omitzero" schema:"maxLength=1024" doc:"The key; of clear none."`
	Value JSON    `json:"value,omitzero" doc:"Of set and push."`
	Max   int64   `json:"max,omitzero" schema:"minimum=1,maximum=1000000" doc:"Of push: how many of the last elements stay; all if absent."`
}

// Check validates what spans more than one field.
func (o StateOperation) Check() error {
	keyed, valued := o.Op != ClearOp, o.Op == SetOp || o.Op == PushOp
	switch {
	case keyed && o.Key == "":
		return Invalid("/key", "%s needs a key", o.Op)
	case !keyed && o.Key != "":
		return Invalid("/key", "%s concerns all keys, and takes none; use delete for one", o.Op)
	case valued && o.Value == nil:
		return Invalid("/value", "%s needs a value, which may be null; use delete to remove a key", o.Op)
	case !valued && o.Value != nil:
		return Invalid("/value", "%s takes no value", o.Op)
	case o.Max != 0 && o.Op != PushOp:
		return Invalid("/max", "only push takes max")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (StateOperation) Constraint() string {
	const key, noKey = `"required":["key"],"properties":{"key":{"type":"string","minLength":1},`, `"properties":{"key":{"enum":["",null]},`
	const noMax = `"max":{"enum":[0,null]}`
	return `{"oneOf":[` +
		`{` + key + `"op":{"const":"set"},` + noMax + `},"allOf":[{"required":["value"]}]},` +
		`{` + key + `"op":{"const":"push"}},"allOf":[{"required":["value"]}]},` +
		`{` + key + `"op":{"const":"delete"},` + noMax + `},"not":{"required":["value"]}},` +
		`{` + noKey + `"op":{"const":"clear"},` + noMax + `},"not":{"required":["value"]}}]}`
}

// ApplyOperations applies operations to the object of a key-value state, in order, and returns
// the new object and the number of its keys. An empty document counts as {}. The error names
// the operation at fault, and its key.
func ApplyOperations(doc JSON, operations []StateOperation) (JSON, int64, error) {
	values, err := ParseKeyedValues(doc)
	if err != nil {
		return nil, 0, err
	}
	for i, o := range operations {
		switch o.Op {
		case SetOp:
			err = values.Set(o.Key, o.Value)
		case PushOp:
			err = values.Push(o.Key, o.Value, o.Max)
		case DeleteOp:
			values.Delete(o.Key)
		case ClearOp:
			values.Clear()
		default:
			err = fmt.Errorf("there is no operation %.40q", o.Op)
		}
		if err != nil {
			return nil, 0, Invalid(fmt.Sprintf("/operations/%d", i), "%w", err)
		}
	}
	return values.Encode(), int64(values.Len()), nil
}

// PickKeys returns the object of a key-value state with only these keys, in its own order.
func PickKeys(doc JSON, keys []string) (JSON, error) {
	values, err := ParseKeyedValues(doc)
	if err != nil {
		return nil, err
	}
	values.Keep(keys)
	return values.Encode(), nil
}

// Data of the commands.
type (
	// MergeState applies operations to a thread's key-value state, all or none, without loading it.
	// It starts a new life of the state if none is open.
	MergeState struct {
		Operations  []StateOperation `json:"operations" schema:"required,minItems=1,maxItems=10000" doc:"The operations, in order."`
		Create      bool             `json:"create,omitzero" doc:"Create the thread if it does not exist."`
		UserID      string           `json:"userId,omitzero" schema:"maxLength=256" doc:"With create: the user that the thread belongs to."`
		IdleSeconds int64            `json:"idleSeconds,omitzero" schema:"minimum=1,maximum=31622400" doc:"How long after the last activity the life ends; 3600 if never set."`
		Listeners   []string         `json:"listeners,omitempty" schema:"maxItems=16" doc:"More applications that listen to the end of the life."`
		Session     *MergeSession    `json:"session,omitzero" doc:"The request of the conversation that the merge is part of."`
	}
	// TouchState renews the current life of a thread's state, if there is one.
	TouchState struct{}
	// DestroyState ends the current life of a thread's state, if there is one. The next merge
	// opens another.
	DestroyState struct {
		Reason string `json:"reason,omitzero" schema:"maxLength=1024" doc:"Why; destroyed if absent."`
	}
	// ReleaseState says that an application has done what it does at the end of a life. Once
	// all that listen have, the values are cleared.
	ReleaseState struct {
		Life      int64  `json:"life" schema:"required,minimum=1,maximum=9007199254740991" doc:"The life that has ended."`
		Listener  string `json:"listener" schema:"required,pattern=name" doc:"The application, as merges named it."`
		ErrorText string `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why its listener failed for good, if it did."`
	}
)

// Check validates the names of listeners, and what spans more than one field.
func (d MergeState) Check() error {
	for i, name := range d.Listeners {
		if !Pattern(PatternName).MatchString(name) {
			return Invalid(fmt.Sprintf("/listeners/%d", i), "the name of an application is a letter or digit, and then up to 127 letters, digits and _ . : / -")
		}
	}
	if d.UserID != "" && !d.Create {
		return Invalid("/userId", "userId is of the thread that create creates; use thread.update to change a thread's")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (MergeState) Constraint() string {
	pattern, _ := json.Marshal(Pattern(PatternName).String())
	return `{"properties":{"listeners":{"items":{"pattern":` + string(pattern) + `}}},` +
		`"anyOf":[{"properties":{"userId":{"enum":["",null]}}},{"required":["create"],"properties":{"create":{"const":true}}}]}`
}

type stateRules interface {
	StateRenewed(e *Event, d StateRenewed) error
	StateReleased(e *Event, d StateReleased) error
}

func stateEvents() []Row {
	return []Row{
		row(StateRenewedType, 1, "A life of the thread's key-value state was opened, or lasts longer.",
			StateRenewed{Life: 1, Until: "2026-02-20T13:00:00.123456Z", IdleSeconds: 3600, Listeners: []string{"shop"}}, Rules.StateRenewed),
		row(StateReleasedType, 1, "An application has finished its work at the end of a life of the thread's key-value state.",
			StateReleased{Life: 1, Listener: "shop"}, Rules.StateReleased),
	}
}

func stateCommands() []Command {
	return []Command{
		command("state.merge", "Changes a thread's key-value state by operations, without loading it.", MergeState{
			Operations: []StateOperation{
				{Op: SetOp, Key: "cart", Value: JSON(`{"items":2}`)}, {Op: PushOp, Key: "messages", Value: JSON(`"Where is my order?"`), Max: 50},
			},
		}, StateChangedType, ThreadCreatedType, ContextCreatedType, StateRenewedType, SessionStartedType, SessionCompletedType).relating(Relates{User: "userId", Makes: true}),
		command("state.touch", "Renews the idle time of a thread's key-value state.", TouchState{}, StateRenewedType),
		command("state.destroy", "Ends the current life of a thread's key-value state, so that it starts afresh.",
			DestroyState{}, LifecycleDestroyedType, ContextStatusChangedType, StateClosedType),
		command("state.release", "Says that an application has finished its work at the end of a life of a state.",
			ReleaseState{Life: 1, Listener: "shop"}, StateReleasedType, StateClosedType),
	}
}

// GetState returns the values of a thread's key-value state, as the log has them now.
type GetState struct {
	ThreadID string   `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	Keys     []string `json:"keys,omitempty" schema:"maxItems=10000" doc:"Only these keys; all if absent."`
	Life     int64    `json:"life,omitzero" schema:"minimum=1,maximum=9007199254740991" doc:"The life to read, which may have ended but is not cleared yet; the current one if absent."`
	At       *At      `json:"at,omitzero" doc:"As it was then."`
	Fresh
}

// StateValues is a thread's key-value state. Without a life there is none: nothing was written
// since the last life ended.
type StateValues struct {
	Values    JSON     `json:"values" schema:"required,object" doc:"The keys and their values."`
	Life      int64    `json:"life,omitzero" schema:"minimum=1" doc:"The life, from 1."`
	Loaded    bool     `json:"loaded,omitzero" doc:"True: the values are those of the life."`
	ContextID string   `json:"contextId,omitzero" schema:"pattern=id" doc:"The life's context."`
	ExpiresAt string   `json:"expiresAt,omitzero" schema:"pattern=time" doc:"When the life ends, without further activity; absent if it has ended."`
	Ended     bool     `json:"ended,omitzero" doc:"The life has ended; its values are cleared after its listeners."`
	Listeners []string `json:"listeners,omitempty" doc:"The applications that listen to its end or, once it has ended, that it waits for."`
	Version   int64    `json:"version,omitzero" schema:"minimum=1" doc:"The thread's version."`
	Seq       int64    `json:"seq,omitzero" schema:"minimum=1" doc:"The sequence in the log of the thread's last commit."`
}

// Life is the document of a life of a thread's state, until it is cleared.
type Life struct {
	ThreadID  string   `json:"threadId" schema:"required,pattern=thread" doc:"The thread."`
	ContextID string   `json:"contextId" schema:"required,pattern=id" doc:"The context that holds the values."`
	Life      int64    `json:"life" schema:"required,minimum=1" doc:"Its number in the thread."`
	Until     int64    `json:"until" schema:"required" doc:"When it ends, or then stops waiting for listeners, in microseconds since 1970."`
	IdleSecs  int64    `json:"idleSeconds" schema:"required,minimum=1" doc:"How long after the last activity it ends."`
	Ended     bool     `json:"ended,omitzero" doc:"It has ended, and takes no more writes."`
	Listeners []string `json:"listeners,omitempty" doc:"The applications that listen to its end."`
	Stamp
}

func stateQueries() []Query {
	return []Query{query("state.get", "The values of a thread's key-value state.", GetState{ThreadID: exampleThread, Keys: []string{"cart"}})}
}

func stateDocuments() []Document {
	return []Document{
		document[StateValues]("state_values", "A thread's key-value state."),
		document[Life]("life", "A life of a thread's key-value state."),
	}
}

// LifeKey returns the key of the context of a life.
func LifeKey(life int64) string { return LifeKeyPrefix + strconv.FormatInt(life, 10) }

// ParseLifeKey returns the life whose context has that key, and reports whether it is one.
func ParseLifeKey(key string) (life int64, ok bool) {
	digits, ok := strings.CutPrefix(key, LifeKeyPrefix)
	if !ok {
		return 0, false
	}
	life, err := strconv.ParseInt(digits, 10, 64)
	return life, err == nil && life > 0 && LifeKey(life) == key
}

// The document that answers each query, for [QueryFor].
func (GetState) answer() (a StateValues) { return a }
