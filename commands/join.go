package commands

import (
	"errors"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Joined is a command of this process that joins another one in the same commit: it is decided
// directly after that one, on the state that includes its events. Each keeps its own events.
type Joined struct {
	Command *thread.Command
	Look    func(*thread.State) // sees the state after the commit; as for Run
	// Done is called once with the outcome: the commit that holds both, or why there is none.
	// It must return at once.
	Done func(*events.Commit, error)
}

// errParted is the error of a joining command when the command to join has to be decided again.
var errParted = errors.New("the command that it was to join is decided again")

// join adds a command of this process to the commit, directly after the command that was just
// added.
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
		k.finish(nil, err)
		return
	}
	r.taken = append(r.taken, k)
}

// withoutJoined returns the jobs without the joining ones, which it ends with errParted.
func withoutJoined(jobs []*job) []*job {
	own := make([]*job, 0, len(jobs))
	for _, j := range jobs {
		if j.kind != joining {
			own = append(own, j)
			continue
		}
		j.finish(nil, errParted)
	}
	return own
}
