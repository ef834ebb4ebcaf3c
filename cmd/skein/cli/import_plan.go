package cli

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
	"github.com/skein-threads/skein/schema"
)

// planner makes the commits of one conversation. The same conversation and the
// same known state give the same commits.
type planner struct {
	tenant, thread string
	known          known

	prefix  string // of the ids of the current run of commits
	place   int    // in that run, of the current commit
	commits []commit
	now     commit
	group   []planned         // commands that should not be parted
	counted counts            // of the group
	at      int               // the message that is planned
	err     error             // the first thing that cannot be imported
	check   *schema.Validator // checks the commands; nil: they were checked
}

// plan returns the commits that are missing in the log, in order. The error says why the
// conversation cannot be imported at all.
func plan(tenant, thread string, c *openaichat.Conversation, k known, check *schema.Validator) ([]commit, error) {
	p := &planner{tenant: tenant, thread: thread, known: k, check: check}
	for _, t := range turns(c) {
		p.turn(t)
	}
	if p.err != nil {
		return nil, p.err
	}
	var missing []commit
	for _, c := range p.commits {
		if !k.commands[c.id] && len(c.commands()) > 0 {
			missing = append(missing, c)
		}
	}
	return missing, nil
}

// CheckConversation says what of a conversation cannot be imported, or nothing. It reads and
// writes nothing.
func CheckConversation(v *schema.Validator, tenant string, c *openaichat.Conversation) error {
	if err := checkCommand(v, "thread.create", create(c)); err != nil {
		return err
	}
	_, err := plan(tenant, events.DeriveThreadID(tenant, openaichat.KeyPrefix+c.ID), c, nothing(), v)
	return err
}

// create returns the command that creates the thread of a conversation.
func create(c *openaichat.Conversation) events.CreateThread {
	return events.CreateThread{Key: openaichat.KeyPrefix + c.ID, Title: c.Title, Metadata: c.Metadata}
}

// checkCommand returns the refusal of a command, as the service would say it.
func checkCommand(v *schema.Validator, name string, data any) error {
	raw, err := json.Marshal(data, json.Deterministic(true))
	if err == nil {
		_, err = v.DecodeCommand(name, raw)
	}
	if err != nil {
		return fmt.Errorf("%s: %s", name, events.AsError(err).Message)
	}
	return nil
}

// id derives an id from the place of a message.
func (p *planner) id(prefix string, m *openaichat.Message, what string, n int) string {
	return events.DeriveID(prefix, 0, p.tenant, p.thread, "import:"+strconv.Itoa(m.Index)+":"+what, n)
}

// turn plans a turn, or what is missing of it.
func (p *planner) turn(t *turn) {
	p.notes(t.before)
	if t.trigger == nil {
		return
	}
	// An execution that has ended is left alone. If the conversation has grown
	// since, another one answers the same trigger with the steps that are new.
	from := 0
	for p.known.ended[p.execution(t, from)] {
		execution, next := p.execution(t, from), max(from, 0)
		for next < len(t.steps) && p.known.stepOf[p.stepID(t.steps[next])] == execution {
			next++
		}
		switch {
		case next == len(t.steps):
			return
		case next > max(from, 0):
			from = next
		case from == 0: // nobody had answered
			from = -1
		default:
			return
		}
	}
	p.react(t, from)
}

// execution returns the id of the execution that starts with a step: with the first for 0, and
// after an execution without steps for -1.
func (p *planner) execution(t *turn, from int) string {
	return p.id(events.ExecutionPrefix, t.trigger, "execution", from)
}

func (p *planner) stepID(s *step) string { return p.id(events.StepPrefix, s.answer, "step", 0) }

// react plans one execution in the order of EK 7.
func (p *planner) react(t *turn, from int) {
	p.begin("turn", t.trigger.Index, from)
	p.at = t.trigger.Index
	r := &reaction{
		planner: p, turn: t,
		execution: p.execution(t, from),
		item:      p.id(events.ItemPrefix, t.trigger, "reaction", from),
	}
	trigger := p.id(events.ItemPrefix, t.trigger, "message", 0)
	p.add("context.resolve", events.ResolveContext{})
	if from == 0 {
		p.message(t.trigger, events.ItemStored)
		p.counted.turns++
	}
	p.add("thread.status", events.SetThreadStatus{To: events.ThreadStreaming})
	p.add("context.status", events.SetContextStatus{To: events.ContextStreaming})
	p.add("execution.create", events.CreateExecution{ID: r.execution, TriggerItemID: trigger, ReactionItemID: r.item})
	p.end()
	for i := max(from, 0); i < len(t.steps); i++ {
		r.step(t.steps[i], i-max(from, 0), i < len(t.steps)-1)
		p.end()
	}
	if !r.made { // nobody answered: the execution is closed all the same
		p.item(events.NewItem{
			ID: r.item, Type: events.Message, Role: events.Assistant, Status: events.ItemPending,
			Content: events.JSON("[]"), Silent: true, CreatedAt: t.trigger.At,
		})
	}
	p.add("item.status", events.SetItemStatus{ItemID: r.item, To: events.ItemCompleted})
	p.add("execution.status", events.SetExecutionStatus{ExecutionID: r.execution, To: events.ExecutionCompleted})
	p.add("thread.finish", events.FinishThread{ExecutionID: r.execution})
	p.add("context.status", events.SetContextStatus{To: events.ContextOpen})
	p.add("thread.status", events.SetThreadStatus{To: events.ThreadOpen})
	p.end()
	p.flush()
}

// notes plans messages that belong to no execution, but for those that are
// there: they stood at the end of a conversation that has grown since.
func (p *planner) notes(list []*openaichat.Message) {
	for i, m := range list {
		if p.known.made[p.noteID(m)] {
			continue
		}
		if i == 0 || p.known.made[p.noteID(list[i-1])] {
			p.begin("notes", m.Index, 0)
		}
		p.note(m)
		p.end()
	}
	p.flush()
}

// noteID returns the id of the first item of a note.
func (p *planner) noteID(m *openaichat.Message) string {
	if len(m.Content) == 0 && len(m.Calls) > 0 {
		return p.id(events.ItemPrefix, m, "call", 0)
	}
	return p.id(events.ItemPrefix, m, "message", 0)
}

func (p *planner) note(m *openaichat.Message) {
	p.at = m.Index
	if m.Result {
		p.resultItem(m, m.Name, "")
		return
	}
	message := ""
	if len(m.Content) > 0 || len(m.Calls) == 0 {
		p.message(m, events.ItemCompleted)
		message = p.noteID(m)
	}
	for i := range m.Calls {
		p.callItem(m, i, message)
	}
}

// message adds a message's own item.
func (p *planner) message(m *openaichat.Message, status events.ItemStatus) {
	item := events.NewItem{
		ID: p.id(events.ItemPrefix, m, "message", 0), Type: events.Message, Role: m.Role, Status: status, Content: list(m.Content), CreatedAt: m.At,
	}
	if m.Name != "" {
		item.Metadata = object("name", m.Name)
	}
	p.item(item)
}

// callItem adds the item of a call.
func (p *planner) callItem(m *openaichat.Message, n int, parent string) {
	c := m.Calls[n]
	p.counted.calls++
	p.item(events.NewItem{
		ID: p.id(events.ItemPrefix, m, "call", n), Type: events.ActionExecute, Status: events.ItemCompleted, ParentItemID: parent,
		Content: object("callId", c.ID, "name", c.Name, "arguments", c.Arguments), CreatedAt: m.At,
	})
}

// nameMost is how long the name of a result's tool may be, in letters.
const nameMost = 256

// resultItem adds the item of a call's result.
func (p *planner) resultItem(m *openaichat.Message, name, parent string) {
	pairs := []any{"callId", m.CallID, "output", m.Output}
	if m.IsError {
		pairs = append(pairs, "isError", true)
	}
	if name != "" && utf8.RuneCountInString(name) <= nameMost {
		pairs = append(pairs, "name", name)
	}
	content := object(pairs...)
	p.item(events.NewItem{
		ID: p.id(events.ItemPrefix, m, "message", 0), Type: events.ActionResult, Status: events.ItemCompleted,
		ParentItemID: parent, Content: content, CreatedAt: m.At,
	})
}

func (p *planner) item(item events.NewItem) {
	p.counted.items++
	p.add("item.create", events.CreateItem{Item: item})
	p.group[len(p.group)-1].done = p.known.made[item.ID]
}
