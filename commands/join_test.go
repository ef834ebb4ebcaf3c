package commands

import (
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// companion joins each new item with a context, and notes how that ended.
type companion struct {
	content events.JSON
	id      string // of the context; none is named if empty

	mu     sync.Mutex
	looked int
	ends   []*events.Commit // nil: it came to nothing
}

func (c *companion) Stored(*events.Commit) {}

func (c *companion) Joins(made []events.Event) *Joined {
	if made[0].Type != events.ItemCreatedType {
		return nil
	}
	return &Joined{
		Command: &thread.Command{
			ID: "with " + made[0].CommandID, Tenant: tenant, ThreadID: made[0].ThreadID,
			Parts: []thread.Part{{Name: "context.create", Data: events.CreateContext{ID: c.id, Content: c.content}}},
		},
		Look: func(*thread.State) { c.looked++ },
		Done: func(commit *events.Commit, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if (commit == nil) == (err == nil) {
				panic("it is told neither or both")
			}
			c.ends = append(c.ends, commit)
		},
	}
}

// A joining command is decided right after the one that it joins, stored in its commit, and no
// part of its reply. If it is refused, or makes the commit too large, the other runs alone; if
// the other is decided again, so is the joining one.
func TestJoinedCommands(t *testing.T) {
	c := &companion{content: events.JSON(`{"a":1}`)}
	w := newWorld(t, Config{Intake: c})
	id := create(t, w.d)
	last := func() string {
		list := w.commits(id)
		var kinds []string
		for _, e := range list[len(list)-1].Events {
			kinds = append(kinds, string(e.Type))
		}
		return strings.Join(kinds, " ")
	}
	step := func(what, want string, ends ...bool) {
		t.Helper()
		c.ends, c.looked = nil, 0
		reply := must(t, w.d, "item.create", on(id, hello))
		if len(reply.Events) != 1 || reply.Events[0].Type != events.ItemCreatedType {
			t.Errorf("%s: the reply has %+v", what, reply.Events)
		}
		if got := last(); got != want {
			t.Errorf("%s: the commit has %s", what, got)
		}
		looked := 0
		for i, stored := range ends {
			if stored {
				looked++
			}
			if i >= len(c.ends) || (c.ends[i] != nil) != stored || stored && int64(c.ends[i].Seq) != reply.Seq {
				t.Errorf("%s: it ended %+v", what, c.ends)
			}
		}
		if len(c.ends) != len(ends) || c.looked != looked {
			t.Errorf("%s: it was told %d times, and looked %d times", what, len(c.ends), c.looked)
		}
	}
	step("together", "item.created context.created", true)
	must(t, w.another(Config{}), "item.create", on(id, hello))
	step("on a thread that moved", "item.created context.created", false, true)
	c.id = must(t, w.d, "context.create", on(id, `{}`)).Result.ContextID // is taken
	step("refused", "item.created", false)
	c.id, c.content = "", events.JSON(`"`+strings.Repeat("x", events.MaxCommitBytes-600)+`"`)
	step("too large together", "item.created", false)
	c.content = nil
	step("and again", "item.created context.created", true)
}
