package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// overSeveral reports whether a command is decided on several threads, and stored on all of them
// or on none. A command of that kind that is added needs a case here and in [client.drawFamily].
func overSeveral(name string) bool {
	switch name {
	case "thread.fork", "thread.mention", "thread.truncate":
		return true
	}
	return false
}

// drawFamily makes up a command about threads that are related, or about to be.
func (c *client) drawFamily(i int) (name, threadID, data string) {
	base := func() string { return fmt.Sprintf("T-00000000-0000-7000-8000-%012d", c.rng.IntN(c.run.shape.threads)) }
	related := func() string {
		if len(c.forks) > 0 && c.rng.IntN(3) == 0 {
			return pick(c.rng, c.forks)
		}
		return base()
	}
	key := fmt.Sprintf("k%d", c.rng.IntN(c.run.shape.keys))
	ref := related()
	if c.rng.IntN(8) == 0 {
		ref = "key:" + key
	}
	fresh := fmt.Sprintf("itm_%d_%d", c.n, i)
	item := fmt.Sprintf("itm_%d_%d", c.rng.IntN(c.run.shape.clients), c.rng.IntN(i+1))
	index := strconv.Itoa(c.rng.IntN(3))
	message := `{"item":{"id":"` + fresh + `","type":"message","role":"user","content":[{"type":"input_text","text":"` + fresh + `"}]}}`
	roll := c.rng.IntN(24)
	if i == 0 {
		roll /= 4 // somebody must begin
	}
	switch {
	case roll < 2:
		return "thread.create", base(), `{"title":"a thread"}`
	case roll < 3:
		return "thread.create", base(), `{"key":"` + key + `"}`
	case roll < 9:
		return "item.create", ref, message
	case roll < 10:
		return "message.edit", ref, `{"itemId":"` + item + `","content":[]}`
	case roll < 11:
		return "message.delete", ref, `{"itemId":"` + item + `"}`
	case roll < 14:
		return "thread.mention", ref, `{"mentionedId":"` + related() + `","comment":"` + fresh + `"}`
	case roll < 15:
		return "thread.mention", ref, `{"mentionedId":"` + related() + `","messageIndex":` + index + `}`
	case roll < 17:
		return "thread.fork", ref, `{"messageIndex":` + index + `}`
	case roll < 18:
		return "thread.fork", ref, `{"itemId":"` + item + `","title":"` + fresh + `"}`
	case roll < 19:
		return "thread.fork", ref, `{"messageIndex":` + index + `,"key":"` + key + `"}`
	case roll < 20:
		return "thread.fork", ref, `{"version":` + strconv.Itoa(1+c.rng.IntN(8)) + `}`
	case roll < 23:
		return "thread.truncate", ref, `{"messageIndex":` + index + `}`
	}
	return "thread.delete", ref, `{}`
}

// families is what the log says of relationships: the whole of it, folded without the code that
// decides.
type families struct {
	states  map[string]*thread.State
	history map[string][]*events.Commit
	records map[string]map[string]events.RelationshipAdded // by thread, and name
	gone    map[string]bool
}

func newFamilies(states map[string]*thread.State) *families {
	return &families{states, map[string][]*events.Commit{}, map[string]map[string]events.RelationshipAdded{}, map[string]bool{}}
}

// see folds the next commit.
func (f *families) see(c *events.Commit) error {
	f.history[c.Thread] = append(f.history[c.Thread], c)
	mine := f.records[c.Thread]
	if mine == nil {
		mine = map[string]events.RelationshipAdded{}
		f.records[c.Thread] = mine
	}
	for i := range c.Events {
		switch d := c.Events[i].Data.(type) {
		case events.RelationshipAdded:
			name := recordName(d.ThreadID, d.Type, d.Role)
			if _, twice := mine[name]; twice {
				return fmt.Errorf("commit %d: %s has %s twice", c.Seq, c.Thread, name)
			}
			mine[name] = d
		case events.RelationshipRemoved:
			name := recordName(d.ThreadID, d.Type, d.Role)
			if _, there := mine[name]; !there {
				return fmt.Errorf("commit %d: %s removes %s, which it does not have", c.Seq, c.Thread, name)
			}
			delete(mine, name)
		case events.LifecycleDeleted:
			f.gone[c.Thread] = true
		}
	}
	return nil
}

func recordName(id string, kind events.RelationshipKind, role events.RelationshipRole) string {
	return string(kind) + " as " + string(role) + " to " + id
}

// whole checks that each relationship is recorded by both threads, unless one is deleted.
func (f *families) whole() error {
	for _, id := range slices.Sorted(maps.Keys(f.records)) {
		for name, d := range f.records[id] {
			role := events.ParentRole
			if d.Role == role {
				role = events.ChildRole
			}
			other, there := f.records[d.ThreadID][recordName(id, d.Type, role)]
			switch {
			case f.gone[id], f.gone[d.ThreadID]:
			case !there:
				return fmt.Errorf("half a relationship: %s has %s, which records no match", id, name)
			case (other.MessageIndex == nil) != (d.MessageIndex == nil), d.MessageIndex != nil && *d.MessageIndex != *other.MessageIndex, d.Comment != other.Comment:
				return fmt.Errorf("%s has %s as %+v, and the other thread %+v", id, name, d, other)
			}
		}
	}
	return nil
}

// messagesOf returns what a fork of a thread copies, by its read model: the items, and the
// places of those that a messageIndex counts.
func (c *checker) messagesOf(f *families, id string, upTo int64) (items []*events.Item, shown []int) {
	memory := c.Models.NewMemory(nil)
	for _, commit := range f.history[id] {
		part := *commit
		for upTo > 0 && len(part.Events) > 0 && part.Events[len(part.Events)-1].Version > upTo {
			part.Events = part.Events[:len(part.Events)-1]
		}
		if len(part.Events) > 0 {
			part.Version = part.Events[len(part.Events)-1].Version
			if err := memory.Apply(&part); err != nil {
				panic(err) // histories of simulations are short, and have no pages
			}
		}
	}
	for _, slot := range memory.All(documents.AllKinds) {
		if item, ok := slot.Doc.(*events.Item); ok {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b *events.Item) int { return int(a.Index - b.Index) })
	for i, item := range items {
		if item.Type == events.Message && item.Depth == 0 && !item.Silent {
			shown = append(shown, i)
		}
	}
	return items, shown
}

// copied returns what a fork copies, nil if there is no message to fork at.
func (c *checker) copied(f *families, id string, d events.ForkThread) *thread.Copied {
	upTo := int64(0)
	if d.Version != nil {
		upTo = *d.Version
	}
	items, shown := c.messagesOf(f, id, upTo)
	at := len(shown) - 1
	switch {
	case d.MessageIndex != nil:
		if at = int(*d.MessageIndex); at >= len(shown) {
			return nil
		}
	case d.ItemID != "":
		if at = slices.IndexFunc(shown, func(i int) bool { return items[i].ID == d.ItemID }); at < 0 {
			return nil
		}
	}
	end := len(items)
	copied := &thread.Copied{}
	if at >= 0 {
		point := int64(at)
		copied.Point, copied.PointItem = &point, items[shown[at]].ID
		if at+1 < len(shown) {
			end = shown[at+1]
		}
	}
	places := map[string]int64{}
	for _, i := range items[:end] {
		places[i.ID] = i.Index
		one := events.InheritedItem{
			Index: i.Index, ID: i.ID, Type: i.Type, Role: i.Role, Channel: i.Channel, Content: i.Content, CreatedAt: i.CreatedAtMicros,
			Depth: i.Depth, Silent: i.Silent, Metadata: i.Metadata, CallOf: i.CallOf, MessageID: i.MessageID,
		}
		if at, ok := places[i.ParentItemID]; ok {
			one.Parent = &at
		}
		copied.Items = append(copied.Items, one)
	}
	return copied
}

// decideGroup decides a command over several threads on their states.
func (c *checker) decideGroup(f *families, cmd *thread.Command) (*thread.Group, error) {
	own := f.states[cmd.ThreadID]
	if own == nil {
		own = &thread.State{}
	}
	states := map[string]*thread.State{cmd.ThreadID: own}
	for _, id := range own.Others(cmd) {
		if states[id] = f.states[id]; states[id] == nil {
			states[id] = &thread.State{}
		}
	}
	if d, fork := cmd.Parts[0].Data.(events.ForkThread); fork && own.Exists() {
		if cmd.Copied = c.copied(f, cmd.ThreadID, d); cmd.Copied == nil {
			return nil, events.Invalid("", "there is no such message")
		}
	}
	g := thread.NewGroup(states)
	return g, g.Do(cmd)
}

// idle reports whether the answer says that nothing was to do.
func (a *attempt) idle() bool {
	return a.reply != nil && len(a.reply.Events) == 0
}

// explainGroups looks for the refusals, and the answers that nothing was to do, that the states
// explain, which were those of the log from one step to another.
func (c *checker) explainGroups(f *families, from, to int) {
	for _, a := range c.history {
		if !overSeveral(a.name) || c.just[a] || a.end < from || a.begun > to || !a.refused() && !a.idle() {
			continue
		}
		ids := []string{c.ref(a)}
		if ids[0] == "" {
			ids = slices.Sorted(maps.Keys(f.states))
		}
		for _, id := range ids {
			if c.explained(f, a, id) {
				c.just[a] = true
				break
			}
		}
	}
}

func (c *checker) explained(f *families, a *attempt, id string) bool {
	cmd, err := c.command(a, id, 0)
	if err != nil {
		return false
	}
	g, err := c.decideGroup(f, cmd)
	if a.refused() {
		return err != nil && events.AsError(err).Code == a.refusal.Code ||
			a.refusal.Code == events.VersionConflict && cmd.Expected != nil && f.states[id] != nil && *cmd.Expected != f.states[id].Version
	}
	return err == nil && len(g.Threads()) == 0 && a.reply.ThreadID == id && f.states[id] != nil && a.reply.Version == f.states[id].Version
}

// groupAt returns the commits of the log from i on that a command over several threads made,
// without those of keys; n is how many there are with them. It is 0 if none begins there.
func (c *checker) groupAt(i int) (own []int, n int) {
	id := c.commits[i].Events[0].CommandID
	if tries := c.byID[id]; len(tries) == 0 || !overSeveral(tries[0].name) {
		return nil, 0
	}
	for j := i; j < len(c.commits) && c.steps[j] == c.steps[i] && c.commits[j].Events[0].CommandID == id; j++ {
		n++
		if events.IsThread(c.commits[j].Thread) {
			own = append(own, j)
		}
	}
	return own, n
}

// replayGroup decides a command over several threads again on the states before it.
func (c *checker) replayGroup(f *families, places []int) error {
	id := c.commits[places[0]].Events[0].CommandID
	a := c.byID[id][0]
	if len(c.done[id]) > 0 {
		return fmt.Errorf("command %s was done twice, again in commit %d", id, c.commits[places[0]].Seq)
	}
	at := c.commits[places[0]].Events[0].Time
	var own string
	for _, i := range places {
		commit := c.commits[i]
		at = min(at, commit.Events[0].Time)
		if s := f.states[commit.Thread]; s != nil {
			if _, known := s.Receipt(id); known {
				return fmt.Errorf("command %s was done twice, again in commit %d", id, commit.Seq)
			}
		}
		if ref := c.ref(a); ref == commit.Thread || ref == "" && acts(commit) {
			own = commit.Thread
		}
		for j := range commit.Events {
			if commit.Events[j].CommandID != id {
				return fmt.Errorf("commit %d holds another command than %s, which is over several threads", commit.Seq, id)
			}
		}
	}
	if own == "" {
		return fmt.Errorf("command %s did nothing on its own thread", id)
	}
	cmd, err := c.command(a, own, at)
	if err != nil {
		return err
	}
	g, err := c.decideGroup(f, cmd)
	if err != nil {
		return fmt.Errorf("command %s: on the states before it it is refused: %w", id, err)
	}
	if len(g.Threads()) != len(places) {
		return fmt.Errorf("command %s: %d threads have its events, and on the states before it %v have", id, len(places), g.Threads())
	}
	for _, i := range places {
		commit := c.commits[i]
		draft := g.Draft(commit.Thread)
		if draft == nil {
			return fmt.Errorf("command %s: %s has its events, and on the states before it only %v have", id, commit.Thread, g.Threads())
		}
		if err := same(draft.Events(), commit.Events); err != nil {
			return fmt.Errorf("command %s on %s: %w", id, commit.Thread, err)
		}
		found := group{commit, c.steps[i], commit.Events}
		if commit.Thread == own {
			c.done[id] = append([]group{found}, c.done[id]...)
		} else {
			c.done[id] = append(c.done[id], found)
		}
		if cmd.Copied != nil && commit.Thread != own {
			if err := copiesOf(cmd.Copied.Items, commit); err != nil {
				return fmt.Errorf("command %s: the fork %s: %w", id, commit.Thread, err)
			}
		}
	}
	return nil
}

// acts reports whether a commit is on the thread that forks, mentions or truncates.
func acts(c *events.Commit) bool {
	for i := range c.Events {
		switch d := c.Events[i].Data.(type) {
		case events.RelationshipAdded:
			return d.Role == events.ParentRole
		case events.HistoryTruncated:
			return true
		}
	}
	return false
}

// copiesOf checks that a fork has the items of its parent, each once and in order.
func copiesOf(items []events.InheritedItem, c *events.Commit) error {
	for i := range c.Events {
		d, ok := c.Events[i].Data.(events.ItemCreated)
		if !ok {
			continue
		}
		if len(items) == 0 {
			return fmt.Errorf("it has %s, a copy of %s, too many", d.ID, d.SourceItemID)
		}
		if from := items[0]; d.SourceItemID != from.ID || string(d.Content) != string(from.Content) || d.Role != from.Role {
			return fmt.Errorf("it has a copy of %s with %s, where one of %s with %s should be", d.SourceItemID, d.Content, from.ID, from.Content)
		}
		items = items[1:]
	}
	if len(items) > 0 {
		return fmt.Errorf("it lacks %d items, first %s", len(items), items[0].ID)
	}
	return nil
}
