package runtime

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// View is a worker's view of a thread: its items, and the progress of the current run. It is folded
// from commits, and so is the same in every process. It has one user at a time; what it shows is
// read-only.
type View struct {
	Contexts  map[string]events.JSON
	Metadata  events.JSON     // of the thread
	Env       events.JSON     // of the thread
	Mode      string          // of the thread's agent
	MaxTokens int64           // the most that a run may write; 0: no limit
	Skills    map[string]bool // that are active; true: a caller has activated it

	Usage   events.Usage                      // of the last run that was requested, as what follows
	Granted map[string]events.ApprovalGranted // by call
	Denied  map[string]string                 // comments by call
	Solved  map[string]events.JSON            // results that persons supplied, by call

	version int64
	seq     uint64
	items   []*said // by index
	byID    map[string]*said
	sides   map[string][]segment  // of answers that are not complete
	run     string                // the execution of the last run that was requested
	pages   []*events.HistoryPage // of the history that the thread has inherited, until it is folded; nil: not read
	bytes   int
}

// said is an item, and the calls among its parts.
type said struct {
	events.Item
	calls   []string
	open    []string  // of calls: those that the caller of a run executes
	call    string    // the call, if it is an item of one
	sides   []segment // of an answer of a dual_ai agent
	parts   int
	steers  bool // it steered a run
	deleted bool
}

// segment is the part of an answer that one side of a dual_ai agent wrote.
type segment struct {
	from int // its first part
	side events.Side
}

// NewView returns the view of a thread that has no commit yet.
func NewView() *View {
	return &View{byID: map[string]*said{}, Contexts: map[string]events.JSON{}, sides: map[string][]segment{}, Skills: map[string]bool{}}
}

// Version returns the thread's version after the commits that are folded.
func (c *View) Version() int64 { return c.version }

// Item returns an item, also a deleted one; nil if there is none.
func (c *View) Item(id string) *events.Item {
	if s := c.byID[id]; s != nil {
		return &s.Item
	}
	return nil
}

// CallerCalls reports whether an item has calls that the caller of its run executes.
func (c *View) CallerCalls(item string) bool {
	s := c.byID[item]
	return s != nil && len(s.open) > 0
}

// Apply folds a commit. It reports false, without a change, if commits before it, or the pages
// of a history that it inherits, are missing and must be read first.
func (c *View) Apply(commit *events.Commit) bool {
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
func (c *View) inherit(e *events.Event, context string) {
	for _, page := range c.pages {
		for i := range page.Items {
			copied := *e
			copied.Type, copied.Data = events.ItemCreatedType, page.Items[i].Created(e.Tenant, e.ThreadID, context)
			c.evolve(&copied)
		}
	}
	c.pages = nil
}

// evolve folds an event. Each of the three folds takes what the others leave.
func (c *View) evolve(e *events.Event) {
	c.evolveThread(e)
	c.evolveItem(e)
	c.evolveRun(e)
}

// evolveThread folds what runs are told of the thread: its profile, skills and contexts.
func (c *View) evolveThread(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		c.Metadata, c.Env = d.Metadata, d.Env
	case events.ProfileChanged:
		if d.Metadata != nil {
			c.Metadata = d.Metadata
		}
		if d.Env != nil {
			c.Env = d.Env
		}
		if d.AgentMode != nil {
			c.Mode = *d.AgentMode
		}
		if d.MaxTokens != nil {
			c.MaxTokens = *d.MaxTokens
		}
	case events.SkillActivated:
		c.Skills[d.Name] = e.Correlation == ""
	case events.ContextCreated:
		c.Contexts[d.ID] = d.Content
	case events.StateChanged:
		if d.Life > 0 {
			break // no run works on a life of the key-value state
		}
		if after, err := d.After(c.Contexts[e.Subject]); err == nil {
			c.Contexts[e.Subject] = after
		}
	}
}

// evolveItem folds items, with the steps that add to them.
func (c *View) evolveItem(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ItemCreated:
		s := &said{Item: d.Item(e.ThreadID, e.Time)}
		s.Version, s.SourceItemID, s.MessageID = e.Version, "", nil // reactors are not told where it was copied from, nor its number
		s.calls, s.open, s.parts = callsOf(s.Item)
		s.call = callOf(s.Item)
		s.sides = c.sides[d.ID]
		delete(c.sides, d.ID)
		s.steers = d.ReactionItemID != ""
		c.put(s)
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
	}
}

// evolveRun folds the newest run: what it used, and what people answered.
func (c *View) evolveRun(e *events.Event) {
	switch d := e.Data.(type) {
	case events.RunRequested:
		if c.run != e.Subject { // else it goes on
			c.run, c.Usage, c.Granted, c.Denied = e.Subject, events.Usage{}, map[string]events.ApprovalGranted{}, map[string]string{}
		}
	case events.TraceRecorded:
		if d.Usage != nil && d.ExecutionID == c.run {
			c.Usage = c.Usage.Add(*d.Usage)
		}
	case events.ApprovalGranted:
		if c.Granted != nil {
			if d.Arguments == nil { // as requested, or as granted before
				d.Arguments = c.Granted[d.CallID].Arguments
			}
			c.Granted[d.CallID] = d
		}
	case events.ApprovalDenied:
		if c.Denied != nil {
			c.Denied[d.CallID] = d.Comment
		}
	case events.ApprovalResolved:
		if c.Solved == nil {
			c.Solved = map[string]events.JSON{}
		}
		c.Solved[d.CallID] = d.Result
	}
}

// partOf holds what is read of a part.
type viewPart struct {
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
	var parts []viewPart
	if json.Unmarshal(i.Content, &parts) != nil {
		return nil, nil, 0
	}
	for _, p := range parts {
		if strings.HasPrefix(p.Type, events.ToolPart) && p.CallID != "" {
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

// put adds an item at its place, which was kept if later items are there already.
func (c *View) put(s *said) {
	at := len(c.items)
	for at > 0 && c.items[at-1].Index > s.Index {
		at--
	}
	c.items = slices.Insert(c.items, at, s)
}

// Shown returns the latest most items of a context for a reactor, oldest first, without messages
// that steered the run from the place from on, which the next step is shown. The items of
// calls that a message has as parts are omitted, except the results of those that the caller of
// a run executes. A side of a dual_ai agent sees the other side's parts as messages of a user.
func (c *View) Shown(context string, side events.Side, from int64, most int) []events.Item {
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
		if s.deleted || s.ContextID != context || s.steers && s.Index >= from {
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
			p.Type = events.InputText
			if raw, err := json.Marshal(p); err == nil {
				out = append(out, raw)
			}
		}
	}
	return out
}

// Arguments returns the arguments of a call that a reaction item has as a part, without a result;
// nil if there is no such call.
func (c *View) Arguments(item, call string) events.JSON {
	s := c.byID[item]
	if s == nil {
		return nil
	}
	var parts []events.JSON
	if json.Unmarshal(s.Content, &parts) != nil {
		return nil
	}
	for _, raw := range parts {
		var p viewPart
		if json.Unmarshal(raw, &p) == nil && p.CallID == call && strings.HasPrefix(p.Type, events.ToolPart) && p.State == "" {
			return p.Input
		}
	}
	return nil
}

// Messages returns the messages of a context, each with its calls.
func (c *View) Messages(context string) []events.ThreadMessage {
	calls := map[string][]*events.Item{}
	for _, s := range c.items {
		if s.Type == events.ActionExecute && s.CallOf != nil && !s.deleted {
			calls[s.ParentItemID] = append(calls[s.ParentItemID], &s.Item)
		}
	}
	out := []events.ThreadMessage{}
	for _, s := range c.items {
		if s.deleted || s.ContextID != context {
			continue
		}
		if m := events.MessageOf(&s.Item, calls[s.ID], 0); m != nil {
			out = append(out, *m)
		}
	}
	return out
}
