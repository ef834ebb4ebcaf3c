package runtime

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// conversation is a worker's view of a thread: its items, and the progress of the
// current run. It is folded from commits, and so is the same in every process.
type conversation struct {
	version  int64
	seq      uint64
	items    []*said // in the log's order
	byID     map[string]*said
	contexts map[string]events.JSON
	metadata events.JSON          // of the thread
	env      events.JSON          // of the thread
	mode     string               // of the thread's agent
	tokens   int64                // the most that a run may write; 0: no limit
	sides    map[string][]segment // of answers that are not complete
	skills   map[string]bool      // that are active; true: a caller has activated it
	bytes    int

	run     string // the execution of the last run that was requested; what follows is of that run
	usage   events.Usage
	granted map[string]events.ApprovalGranted // by call
	denied  map[string]string                 // comments by call
	solved  map[string]events.JSON            // results that persons supplied, by call

	pages []*events.HistoryPage // of the history that the thread has inherited, until it is folded; nil: not read
}

// said is an item, and the calls among its parts.
type said struct {
	events.Item
	calls   []string
	open    []string  // of calls: those that the caller of a run executes
	call    string    // the call, if it is an item of one
	sides   []segment // of an answer of a dual_ai agent
	parts   int
	deleted bool
}

// segment is the part of an answer that one side of a dual_ai agent wrote.
type segment struct {
	from int // its first part
	side events.Side
}

func newConversation() *conversation {
	return &conversation{byID: map[string]*said{}, contexts: map[string]events.JSON{}, sides: map[string][]segment{}, skills: map[string]bool{}}
}

// apply folds a commit. It reports false, without a change, if commits before it, or the pages
// of a history that it inherits, are missing and must be read first.
func (c *conversation) apply(commit *events.Commit) bool {
	switch {
	case commit.Version <= c.version:
		return true // known already
	case commit.Version-int64(len(commit.Events)) != c.version:
		return false
	case c.pages == nil && inherits(commit) != nil:
		return false
	}
	for i := range commit.Events {
		c.evolve(&commit.Events[i])
	}
	c.version, c.seq = commit.Version, commit.Seq
	return true
}

// inherits returns the history that a thread inherits with a commit, nil if it inherits none.
func inherits(commit *events.Commit) *events.HistoryInherited {
	for i := range commit.Events {
		if d, ok := commit.Events[i].Data.(events.HistoryInherited); ok {
			return &d
		}
	}
	return nil
}

// inherit folds the items of an inherited history, as if each had been copied.
func (c *conversation) inherit(e *events.Event, context string) {
	for _, page := range c.pages {
		for i := range page.Items {
			copied := *e
			copied.Type, copied.Data = events.ItemCreatedType, page.Items[i].Created(e.Tenant, e.ThreadID, context)
			c.evolve(&copied)
		}
	}
	c.pages = nil
}

func (c *conversation) evolve(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		c.metadata, c.env = d.Metadata, d.Env
	case events.ProfileChanged:
		if d.Metadata != nil {
			c.metadata = d.Metadata
		}
		if d.Env != nil {
			c.env = d.Env
		}
		if d.AgentMode != nil {
			c.mode = *d.AgentMode
		}
		if d.MaxTokens != nil {
			c.tokens = *d.MaxTokens
		}
	case events.SkillActivated:
		c.skills[d.Name] = e.Correlation == ""
	case events.ContextCreated:
		c.contexts[d.ID] = d.Content
	case events.StateChanged:
		if d.Life > 0 {
			break // no run works on a life of the key-value state
		}
		if after, err := d.After(c.contexts[e.Subject]); err == nil {
			c.contexts[e.Subject] = after
		}
	case events.ItemCreated:
		s := &said{Item: d.Item(e.ThreadID, e.Time)}
		s.Version, s.SourceItemID, s.MessageID = e.Version, "", nil // reactors are not told where it was copied from, nor its number
		s.calls, s.open, s.parts = callsOf(s.Item)
		s.call = callOf(s.Item)
		s.sides = c.sides[d.ID]
		delete(c.sides, d.ID)
		c.items = append(c.items, s)
		c.byID[d.ID] = s
		c.bytes += len(d.Content) + 512
	case events.HistoryInherited:
		c.inherit(e, d.ContextID)
	case events.ItemStatusChanged:
		if s := c.byID[e.Subject]; s != nil {
			s.Status = d.To
		}
	case events.MessageEdited:
		s := c.byID[e.Subject]
		if s == nil {
			return
		}
		was := len(s.Content)
		s.Edit(d)
		s.calls, s.open, s.parts = callsOf(s.Item)
		s.call = callOf(s.Item)
		c.bytes += len(s.Content) - was
	case events.StepCreated:
		if d.Side == "" {
			return
		}
		if s := c.byID[d.EventID]; s != nil {
			s.sides = append(s.sides, segment{from: s.parts, side: d.Side})
		} else { // its first part creates the item
			c.sides[d.EventID] = []segment{{side: d.Side}}
		}
	case events.MessageDeleted:
		if s := c.byID[e.Subject]; s != nil {
			s.deleted = true
		}
	case events.HistoryTruncated:
		for _, s := range c.items {
			s.deleted = s.deleted || s.Index >= d.FromIndex
		}
	case events.ExecutionStatusChanged:
		if s := c.byID[d.ReactionItemID]; s != nil {
			s.Failed = d.To == events.ExecutionFailed
		}
	case events.StepStatusChanged:
		if s := c.byID[d.ReactionItemID]; s != nil {
			s.Failed = d.To == events.StepFailed
		}
	case events.RunRequested:
		if c.run != e.Subject { // else it goes on
			c.run, c.usage, c.granted, c.denied = e.Subject, events.Usage{}, map[string]events.ApprovalGranted{}, map[string]string{}
		}
	case events.TraceRecorded:
		if d.Usage != nil && d.ExecutionID == c.run {
			c.usage = c.usage.Add(*d.Usage)
		}
	case events.ApprovalGranted:
		if c.granted != nil {
			if d.Arguments == nil { // as requested, or as granted before
				d.Arguments = c.granted[d.CallID].Arguments
			}
			c.granted[d.CallID] = d
		}
	case events.ApprovalDenied:
		if c.denied != nil {
			c.denied[d.CallID] = d.Comment
		}
	case events.ApprovalResolved:
		if c.solved == nil {
			c.solved = map[string]events.JSON{}
		}
		c.solved[d.CallID] = d.Result
	}
}

// toolPart is the prefix of the type of a part that is a tool call.
const toolPart = "tool-"

// partOf holds what the runtime reads of a part.
type partOf struct {
	Type   string      `json:"type"`
	CallID string      `json:"toolCallId"`
	State  string      `json:"state"`
	Input  events.JSON `json:"input"`
}

// callsOf returns the calls among the parts of an agent's message, those among them that the
// caller of a run executes, and the number of parts.
func callsOf(i events.Item) (calls, open []string, n int) {
	if i.Type != events.Message || i.Role != events.Assistant || len(i.Content) < 3 {
		return nil, nil, 0
	}
	var parts []partOf
	if json.Unmarshal(i.Content, &parts) != nil {
		return nil, nil, 0
	}
	for _, p := range parts {
		if strings.HasPrefix(p.Type, toolPart) && p.CallID != "" {
			calls = append(calls, p.CallID)
			if p.State == events.CallerState {
				open = append(open, p.CallID)
			}
		}
	}
	return calls, open, len(parts)
}

// callOf returns the call whose item it is; "" if there is none.
func callOf(i events.Item) string {
	if i.Type != events.ActionExecute && i.Type != events.ActionResult {
		return ""
	}
	var content struct {
		CallID string `json:"callId"`
	}
	if json.Unmarshal(i.Content, &content) != nil {
		return ""
	}
	return content.CallID
}

// shown returns the latest most items of a context for a reactor, oldest first. The items of
// calls that a message has as parts are omitted, except the results of those that the caller of
// a run executes. A side of a dual_ai agent sees the other side's parts as messages of a user.
func (c *conversation) shown(context string, side events.Side, most int) []events.Item {
	calls, open := map[string]bool{}, map[string]bool{}
	for _, s := range c.items {
		if !s.deleted && s.ContextID == context {
			for _, id := range s.calls {
				calls[id] = true
			}
			for _, id := range s.open {
				open[id] = true
			}
		}
	}
	out := make([]events.Item, 0, len(c.items))
	for _, s := range c.items {
		if s.deleted || s.ContextID != context {
			continue
		}
		if s.call != "" && calls[s.call] && (s.Type == events.ActionExecute || !open[s.call]) {
			continue
		}
		if side == "" || len(s.sides) == 0 {
			out = append(out, s.Item)
			continue
		}
		out = append(out, s.split(side)...)
	}
	if most > 0 && len(out) > most {
		out = out[len(out)-most:]
	}
	return out
}

// split returns an answer of a dual_ai agent as one of its sides sees it.
func (s *said) split(side events.Side) []events.Item {
	var parts []events.JSON
	if json.Unmarshal(s.Content, &parts) != nil {
		return []events.Item{s.Item}
	}
	var out []events.Item
	for i, seg := range s.sides {
		to := len(parts)
		if i+1 < len(s.sides) {
			to = s.sides[i+1].from
		}
		own := parts[min(seg.from, len(parts)):min(to, len(parts))]
		if seg.side != side {
			own = textsOf(own)
		}
		if len(own) == 0 {
			continue
		}
		content, err := json.Marshal(own)
		if err != nil {
			continue
		}
		item := s.Item
		item.Content = content
		if seg.side != side {
			item.Role = events.User
		}
		out = append(out, item)
	}
	return out
}

// textsOf returns the texts of parts, which is what the other side sees of them.
func textsOf(parts []events.JSON) []events.JSON {
	var out []events.JSON
	for _, raw := range parts {
		var p struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &p) == nil && p.Type == events.OutputText {
			out = append(out, object("type", events.InputText, "text", p.Text))
		}
	}
	return out
}

// call returns the part of a reaction item that is a call.
func (c *conversation) call(item, call string) (events.JSON, partOf, bool) {
	s := c.byID[item]
	if s == nil {
		return nil, partOf{}, false
	}
	var parts []events.JSON
	if json.Unmarshal(s.Content, &parts) != nil {
		return nil, partOf{}, false
	}
	for _, raw := range parts {
		var p partOf
		if json.Unmarshal(raw, &p) == nil && p.CallID == call && strings.HasPrefix(p.Type, toolPart) && p.State == "" {
			return raw, p, true
		}
	}
	return nil, partOf{}, false
}
