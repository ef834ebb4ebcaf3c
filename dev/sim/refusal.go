package sim

import (
	"fmt"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// ref returns the thread that an attempt names by its id.
func (c *checker) ref(a *attempt) string {
	req, err := c.Validator.DecodeRequest(a.body)
	if err != nil {
		return ""
	}
	id, _ := events.ThreadRef(req.ThreadID)
	return id
}

// explain looks for the refusals, and the answers that nothing was to do, that a state explains,
// which was the thread's from one step to another.
func (c *checker) explain(id string, s *thread.State, from, to int) {
	for _, a := range c.history {
		if !a.refused() && !a.idle() || c.just[a] || a.end < from || a.begun > to || overSeveral(a.name) {
			continue
		}
		if ref := c.ref(a); ref != "" && ref != id || id == "" && a.name != "thread.resolve" {
			continue
		}
		cmd, err := c.command(a, id, 0)
		if err != nil {
			continue
		}
		if _, known := s.Receipt(a.id); known {
			continue
		}
		made, err := thread.Decide(s, cmd)
		if a.idle() {
			c.just[a] = err == nil && len(made) == 0
		} else {
			c.just[a] = err != nil && events.AsError(err).Code == a.refusal.Code
		}
	}
}

// held returns the holders of a key at any time between two steps; "" stands for none.
func (c *checker) held(key string, from, to int) map[string]bool {
	all := map[string]bool{}
	holder := ""
	for _, k := range c.keys {
		if k.key != key {
			continue
		}
		if k.step > to {
			break
		}
		if k.step >= from {
			all[holder] = true
		}
		holder = k.holder
	}
	all[holder] = true
	return all
}

// checkRefusals checks that every refusal was right at some moment between the
// question and the answer.
func (c *checker) checkRefusals() error {
	for _, a := range c.history {
		if !a.refused() || c.just[a] {
			continue
		}
		req, err := c.Validator.DecodeRequest(a.body)
		if err != nil {
			return err
		}
		if _, key := events.ThreadRef(req.ThreadID); key != "" && a.refusal.Code == events.NotFound && c.held(key, a.begun, a.end)[""] {
			continue
		}
		if a.refusal.Code == events.AlreadyExists {
			if cmd, err := c.command(a, "", 0); err == nil {
				key := ""
				switch d := cmd.Parts[0].Data.(type) {
				case events.CreateThread:
					key = d.Key
				case events.ForkThread:
					key = d.Key
				}
				if key != "" && c.taken(key, a) {
					continue
				}
			}
		}
		return fmt.Errorf("command %s, asked for at step %d and refused at %d, was right to be refused at no moment between: %s %s: %w",
			a.id, a.begun, a.end, a.name, a.body, a.refusal)
	}
	return nil
}

// taken reports whether a thread held a key during an attempt.
func (c *checker) taken(key string, a *attempt) bool {
	holders := c.held(key, a.begun, a.end)
	delete(holders, "")
	return len(holders) > 0
}
