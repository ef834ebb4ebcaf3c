package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// group is what one command did: its events in one commit.
type group struct {
	commit *events.Commit
	step   int // in which it was stored
	events []events.Event
}

// checker holds what clients were told against what the log says.
type checker struct {
	*Run
	commits []*events.Commit
	steps   []int // in which each commit was stored
	done    map[string][]group
	byID    map[string][]*attempt
	just    map[*attempt]bool // refusals that a state of the thread explains
	keys    []keyChange
}

// keyChange is a key that was claimed or released.
type keyChange struct {
	step        int
	key, holder string
}

// check holds the run against its properties.
func (r *Run) check() error {
	c := &checker{Run: r, done: map[string][]group{}, byID: map[string][]*attempt{}, just: map[*attempt]bool{}}
	for _, a := range r.history {
		c.byID[a.id] = append(c.byID[a.id], a)
	}
	for _, f := range []func() error{c.read, c.checkKeys, c.replay, c.checkAnswers, c.checkRefusals, c.checkTimeline, c.checkDocuments} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// read decodes the log, and checks the chain and the order of each aggregate.
func (c *checker) read() error {
	names := events.DefaultNames()
	chains, versions := map[string]string{}, map[string]int64{}
	order, ledgers := events.NewTimelineChecker(), map[string]*thread.Ledger{}
	for _, m := range c.server.streams["SKEIN_LOG"].held {
		t, id, ok := names.ParseLog(m.subject)
		version, err := strconv.ParseInt(m.header.Get(events.HeaderVersion), 10, 64)
		if !ok || err != nil {
			return fmt.Errorf("message %d of the log: subject %s, version %v", m.seq, m.subject, err)
		}
		commit, err := events.DecodeCommit(t, id, m.seq, version, m.header.Get(events.HeaderChain), m.data)
		if err != nil {
			return err
		}
		if want := events.Chain(chains[id], m.data); commit.Chain != want {
			return fmt.Errorf("commit %d of %s breaks the chain", m.seq, id)
		}
		for i := range commit.Events {
			e := &commit.Events[i]
			if e.Version != versions[id]+1 {
				return fmt.Errorf("commit %d of %s has version %d after %d", m.seq, id, e.Version, versions[id])
			}
			versions[id] = e.Version
			if err := order.Check(e); err != nil {
				return err
			}
		}
		if ledgers[id] == nil {
			ledgers[id] = &thread.Ledger{}
		}
		var broken error
		ledgers[id].Commit(commit, func(e *events.Event, err error) {
			broken = fmt.Errorf("commit %d of %s: %s could not follow: %w", m.seq, id, e.Type, err)
		})
		if broken != nil {
			return broken
		}
		chains[id] = commit.Chain
		c.commits, c.steps = append(c.commits, commit), append(c.steps, m.step)
	}
	return nil
}

// checkKeys checks that a key has one thread at a time, and that a thread and
// its key change together.
func (c *checker) checkKeys() error {
	holders := map[string]string{}
	for i, commit := range c.commits {
		for j := range commit.Events {
			var key, from, to string
			switch d := commit.Events[j].Data.(type) {
			case events.KeyClaimed:
				key, to = d.Key, d.ThreadID
			case events.KeyReleased:
				key, from = d.Key, d.ThreadID
			default:
				continue
			}
			if events.IsThread(commit.Thread) {
				if i+1 >= len(c.commits) || c.commits[i+1].Thread != events.KeyAggregate(key) || c.steps[i+1] != c.steps[i] {
					return fmt.Errorf("commit %d changes key %s, and the key does not follow", commit.Seq, key)
				}
				continue
			}
			if holders[key] != from {
				return fmt.Errorf("commit %d: key %s goes from %q to %q, and %q has it", commit.Seq, key, from, to, holders[key])
			}
			holders[key] = to
			c.keys = append(c.keys, keyChange{c.steps[i], key, to})
		}
	}
	return nil
}

// command returns the command of an attempt, as the dispatcher decodes it.
func (c *checker) command(a *attempt, threadID string, at events.Time) (*thread.Command, error) {
	req, err := c.Validator.DecodeRequest(a.body)
	if err != nil {
		return nil, err
	}
	cmd := &thread.Command{ID: a.id, Tenant: tenant, ThreadID: threadID, Time: at}
	if req.ExpectedVersion != nil {
		v := *req.ExpectedVersion
		cmd.Expected = &v
	}
	v, err := c.Validator.DecodeTrusted(a.name, req.Data)
	if err != nil {
		return nil, err
	}
	batch, ok := v.(events.CommitThread)
	if !ok {
		cmd.Parts = []thread.Part{{Name: a.name, Data: v}}
		return cmd, nil
	}
	cmd.Batch = true
	for i, sub := range batch.Commands {
		v, err := c.Validator.DecodeTrusted(sub.Command, sub.Data)
		if err != nil {
			return nil, schema.Under("/data/commands/"+strconv.Itoa(i), err)
		}
		cmd.Parts = append(cmd.Parts, thread.Part{Name: sub.Command, Data: v})
	}
	return cmd, nil
}

// replay decides every command of the log again on the state before it, which must make the
// very same events, and looks for the state that explains each refusal.
func (c *checker) replay() error {
	states := map[string]*thread.State{}
	since := map[string]int{} // the step of a thread's last commit
	f, before := newFamilies(states), 0
	for i := 0; i < len(c.commits); i++ {
		commit := c.commits[i]
		if !events.IsThread(commit.Thread) {
			continue
		}
		c.explainGroups(f, before, c.steps[i])
		before = c.steps[i]
		if places, n := c.groupAt(i); n > 0 {
			if err := c.replayGroup(f, places); err != nil {
				return err
			}
			for _, at := range places {
				of := c.commits[at]
				if states[of.Thread] == nil {
					states[of.Thread] = &thread.State{}
				}
				c.explain(of.Thread, states[of.Thread], since[of.Thread], c.steps[at])
				since[of.Thread] = c.steps[at]
				states[of.Thread] = thread.Apply(states[of.Thread], of)
				if err := f.see(of); err != nil {
					return err
				}
			}
			if err := f.whole(); err != nil {
				return fmt.Errorf("after commit %d: %w", c.commits[places[len(places)-1]].Seq, err)
			}
			i += n - 1
			continue
		}
		s := states[commit.Thread]
		if s == nil {
			s = &thread.State{}
			states[commit.Thread] = s
		}
		c.explain(commit.Thread, s, since[commit.Thread], c.steps[i])
		since[commit.Thread] = c.steps[i]
		draft := thread.NewDraft(s)
		for rest := commit.Events; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].CommandID == rest[0].CommandID {
				n++
			}
			g := group{commit, c.steps[i], rest[:n]}
			rest = rest[n:]
			id := g.events[0].CommandID
			if err := c.once(id, s, g); err != nil {
				return err
			}
			c.done[id] = append(c.done[id], g)
			if err := c.decideAgain(draft, g); err != nil {
				return fmt.Errorf("commit %d of %s, command %s: %w", commit.Seq, commit.Thread, id, err)
			}
		}
		states[commit.Thread] = thread.Apply(s, commit)
		if err := f.see(commit); err != nil {
			return err
		}
	}
	end := int(c.Run.steps.Load())
	for _, a := range c.history { // threads that were never made count too
		if id := c.ref(a); id != "" && states[id] == nil {
			states[id] = &thread.State{}
		}
	}
	for id, s := range states {
		c.explain(id, s, since[id], end)
	}
	c.explain("", &thread.State{}, 0, end) // one that thread.resolve would have made
	c.explainGroups(f, before, end)
	return f.whole()
}

// once checks that a command was not done before, on any thread.
func (c *checker) once(id string, s *thread.State, g group) error {
	_, known := s.Receipt(id)
	if known || len(c.done[id]) > 0 {
		return fmt.Errorf("command %s was done twice, again in commit %d", id, g.commit.Seq)
	}
	return nil
}

func (c *checker) decideAgain(draft *thread.Draft, g group) error {
	tries := c.byID[g.events[0].CommandID]
	if len(tries) == 0 {
		return fmt.Errorf("nobody asked for it")
	}
	if g.step < tries[0].begun && g.step < slices.MinFunc(tries, func(a, b *attempt) int { return a.begun - b.begun }).begun {
		return fmt.Errorf("it was done before it was asked for")
	}
	cmd, err := c.command(tries[0], g.commit.Thread, g.events[0].Time)
	if err != nil {
		return err
	}
	made, err := draft.Do(cmd)
	if err != nil {
		return fmt.Errorf("on the state before it it is refused: %w", err)
	}
	return same(made, g.events)
}

// same compares what a command makes on the state before it with what it made.
func same(made, stored []events.Event) error {
	if len(made) != len(stored) {
		return fmt.Errorf("on the state before it it makes %d events, not %d", len(made), len(stored))
	}
	for i := range made {
		if made[i].ID != stored[i].ID || made[i].Type != stored[i].Type || made[i].Version != stored[i].Version || made[i].Subject != stored[i].Subject {
			return fmt.Errorf("event %d is %s %s, and on the state before it %s %s", i, stored[i].Type, stored[i].Subject, made[i].Type, made[i].Subject)
		}
	}
	return nil
}

// checkAnswers checks every answer that a client had against the log.
func (c *checker) checkAnswers() error {
	for id, tries := range c.byID {
		begun := slices.MinFunc(tries, func(a, b *attempt) int { return a.begun - b.begun }).begun
		maybe := false
		for _, a := range tries {
			maybe = maybe || a.open() || a.reply != nil
			if a.reply == nil {
				continue
			}
			if a.idle() {
				if !c.just[a] {
					return fmt.Errorf("command %s was answered that nothing is to do, and there was at every moment: %s %s", id, a.name, a.body)
				}
				continue
			}
			if len(c.done[id]) == 0 {
				return fmt.Errorf("command %s was acknowledged, and is not in the log", id)
			}
			g := c.done[id][0]
			switch {
			case uint64(a.reply.Seq) != g.commit.Seq || a.reply.ThreadID != g.commit.Thread || a.reply.Version != g.events[len(g.events)-1].Version:
				return fmt.Errorf("command %s is in commit %d of %s, and was answered with %+v", id, g.commit.Seq, g.commit.Thread, a.reply)
			case g.step > a.end:
				return fmt.Errorf("command %s was acknowledged at step %d, before it was stored at %d", id, a.end, g.step)
			case g.step < begun:
				return fmt.Errorf("command %s was stored at step %d, before it was asked for at %d", id, g.step, begun)
			case len(a.reply.Events) != len(g.events):
				return fmt.Errorf("command %s made %d events, and was answered with %d", id, len(g.events), len(a.reply.Events))
			}
			for i, ref := range a.reply.Events {
				if ref.ID != g.events[i].ID || ref.Type != g.events[i].Type || ref.Version != g.events[i].Version {
					return fmt.Errorf("command %s made event %s, and was answered with %+v", id, g.events[i].ID, ref)
				}
			}
		}
		if !maybe && len(c.done[id]) > 0 {
			return fmt.Errorf("command %s was refused, and is in commit %d", id, c.done[id][0].commit.Seq)
		}
	}
	return nil
}
