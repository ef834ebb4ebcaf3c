package runtime

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// conversation is what a worker knows of a thread: what has been said, and what
// the run under way has come to. It is folded from commits, and so the same in
// every process.
type conversation struct {
	version  int64
	seq      uint64
	items    []*said // in the log's order
	byID     map[string]*said
	contexts map[string]events.JSON
	metadata events.JSON          // of the thread
	env      events.JSON          // of the thread
	mode     string               // of the thread's agent
	tokens   int64                // the most that a step may write; 0: as the model says
	sides    map[string][]segment // of answers that are not there yet
	bytes    int

	// Of the run under way.
	usage   events.Usage
	granted map[string]events.ApprovalGranted // by call
	denied  map[string]string                 // comments by call
	solved  map[string]events.JSON            // results that persons supplied, by call
}

// said is an item, and the calls that its parts are.
type said struct {
	events.Item
	calls   []string
	call    string    // that the item is of, if it is one of a call
	sides   []segment // of an answer of a dual_ai agent
	parts   int
	deleted bool
}

// segment is what one side of a dual_ai agent wrote of an answer.
type segment struct {
	from int // its first part
	side events.Side
}

func newConversation() *conversation {
	return &conversation{byID: map[string]*said{}, contexts: map[string]events.JSON{}, sides: map[string][]segment{}}
}

// apply takes a commit over. It reports whether it followed on what is known; if
// not, nothing has changed and what lies between must be read first.
func (c *conversation) apply(commit *events.Commit) bool {
	switch {
	case commit.Version <= c.version:
		return true // known already
	case commit.Version-int64(len(commit.Events)) != c.version:
		return false
	}
	for i := range commit.Events {
		c.evolve(&commit.Events[i])
	}
	c.version, c.seq = commit.Version, commit.Seq
	return true
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
	case events.ContextCreated:
		c.contexts[d.ID] = d.Content
	case events.StateChanged:
		if d.Patch == nil {
			c.contexts[e.Subject] = d.Content
		} else if merged, err := events.MergePatch(c.contexts[e.Subject], d.Patch); err == nil {
			c.contexts[e.Subject] = merged
		}
	case events.ItemCreated:
		s := &said{Item: events.Item{
			ID: d.ID, ThreadID: e.ThreadID, ContextID: d.ContextID, Type: d.Type, Role: d.Role, Status: d.Status, Channel: d.Channel,
			Content: d.Content, Index: d.Index, ParentItemID: d.ParentItemID, Depth: d.Depth,
			Silent: d.Silent, Metadata: d.Metadata, CallOf: d.CallOf, Stamp: events.Stamp{Version: e.Version},
		}}
		made := e.Time
		if d.CreatedAt != "" { // brought along, by an import
			if at, err := events.ParseTime(d.CreatedAt); err == nil {
				made = at
			}
		}
		s.CreatedAt, s.CreatedAtMicros = made.ISO(), int64(made)
		s.calls, s.parts = callsOf(s.Item)
		s.call = callOf(s.Item)
		s.sides = c.sides[d.ID]
		delete(c.sides, d.ID)
		c.items = append(c.items, s)
		c.byID[d.ID] = s
		c.bytes += len(d.Content) + 512
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
		s.calls, s.parts = callsOf(s.Item)
		s.call = callOf(s.Item)
		c.bytes += len(s.Content) - was
	case events.StepCreated:
		if d.Side == "" {
			return
		}
		if s := c.byID[d.EventID]; s != nil {
			s.sides = append(s.sides, segment{from: s.parts, side: d.Side})
		} else { // its first part makes the item
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
	case events.ExecutionCreated:
		c.usage, c.granted, c.denied = events.Usage{}, map[string]events.ApprovalGranted{}, map[string]string{}
	case events.TraceRecorded:
		if d.Usage != nil {
			c.usage = c.usage.Add(*d.Usage)
		}
	case events.ApprovalGranted:
		if c.granted != nil {
			if d.Arguments == nil { // as asked for, which may be what was granted before
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

// toolPart begins the type of a part that is a call of a tool.
const toolPart = "tool-"

// partOf is what the runtime reads of a part.
type partOf struct {
	Type   string      `json:"type"`
	CallID string      `json:"toolCallId"`
	State  string      `json:"state"`
	Input  events.JSON `json:"input"`
}

// callsOf lists the calls that the parts of an agent's message are, and counts
// the parts.
func callsOf(i events.Item) (calls []string, n int) {
	if i.Type != events.Message || i.Role != events.Assistant || len(i.Content) < 3 {
		return nil, 0
	}
	var parts []partOf
	if json.Unmarshal(i.Content, &parts) != nil {
		return nil, 0
	}
	for _, p := range parts {
		if strings.HasPrefix(p.Type, toolPart) && p.CallID != "" {
			calls = append(calls, p.CallID)
		}
	}
	return calls, len(parts)
}

// callOf gives the call whose item it is; "" if it is of none.
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

// shown gives what a reactor is told of a context: its items, oldest first, the
// last most of them. The items of calls that a message shows as its parts are
// left out. A side of a dual_ai agent is told what the other wrote as what
// a user says.
func (c *conversation) shown(context string, side events.Side, most int) []events.Item {
	calls := map[string]bool{}
	for _, s := range c.items {
		if !s.deleted && s.ContextID == context {
			for _, id := range s.calls {
				calls[id] = true
			}
		}
	}
	out := make([]events.Item, 0, len(c.items))
	for _, s := range c.items {
		if s.deleted || s.ContextID != context {
			continue
		}
		if s.call != "" && calls[s.call] {
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

// split gives an answer of a dual_ai agent as one of its sides sees it.
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
			own = heard(own)
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

// heard gives what the other side hears of parts: their texts.
func heard(parts []events.JSON) []events.JSON {
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

// call gives the part of the reaction item that a call is.
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
