package commands

import (
	"errors"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Joined is a command of this process that joins another one in the same commit: it is decided
// right after it, on the state that includes its events. Each keeps its own events.
type Joined struct {
	Command *thread.Command
	Look    func(*thread.State) // sees the state after the commit; as for Run
	// Done is called once with the outcome: the commit that holds both, or why there is none.
	// It must return at once.
	Done func(*events.Commit, error)
}

// errParted says that the command that this one was to join is decided again.
var errParted = errors.New("the command that it was to join is decided again")

// join adds a command of this process to the commit of the one that was just taken.
func (r *drafted) join(j *job, made []events.Event) {
	if r.joins == nil {
		return
	}
	with := r.joins(made)
	if with == nil {
		return
	}
	with.Command.Time, with.Command.Inside = j.command.Time, true
	k := commandJob(j.ctx, joining, with.Command)
	k.look, k.joined = with.Look, with
	if _, err := r.draft.Do(k.command); err != nil {
		k.answer(nil, err)
		return
	}
	r.taken = append(r.taken, k)
}

// part returns the jobs without those that were only to join another.
func part(jobs []*job) []*job {
	own := make([]*job, 0, len(jobs))
	for _, j := range jobs {
		if j.kind != joining {
			own = append(own, j)
			continue
		}
		j.answer(nil, errParted)
	}
	return own
}
