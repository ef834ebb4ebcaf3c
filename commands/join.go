package commands

import (
	"errors"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Joined is a command of this process that goes with another one into the same
// commit: it is decided right after it, on what it has made. Each keeps its own
// events.
type Joined struct {
	Command *thread.Command
	Look    func(*thread.State) // sees the state after the commit; as for Run
	// Done is told once how it ended: with the commit that holds both, or with why
	// there is none. It must return at once.
	Done func(*events.Commit, error)
}

// errParted says that the command with which another was to go is decided anew.
var errParted = errors.New("what it was to go with is decided anew")

// join lets a command of this process go with the one that was just taken.
func (r *drafted) join(j *job, made []events.Event) {
	if r.joins == nil {
		return
	}
	with := r.joins(made)
	if with == nil {
		return
	}
	with.Command.Time = j.command.Time
	k := commandJob(j.ctx, joining, with.Command)
	k.look, k.joined = with.Look, with
	if _, err := r.draft.Do(k.command); err != nil {
		k.answer(nil, err)
		return
	}
	r.taken = append(r.taken, k)
}

// part returns the jobs without those that were only to go with another.
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
