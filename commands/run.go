package commands

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Run does a command of this process itself, which came from no request: its
// parts may be those of workers, such as thread.ClaimRun, which nobody can ask
// for over NATS, and it is validated by its decision alone. It gives the stored
// commit, which may hold the events of other commands too, or nil if the command
// changed nothing; and it lets look, if there is one, see the state after it. look
// must not keep the state, or wait.
//
// The error is a refusal, as Do gives it, or what the decision says, such as a
// *thread.LostRunError. The command's id makes a repeat safe; a repeat gives the
// first commit.
func (d *Dispatcher) Run(ctx context.Context, c *thread.Command, look func(*thread.State)) (*events.Commit, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	start := time.Now()
	c.Time = events.TimeOf(d.cfg.Now())
	j := commandJob(ctx, internal, c)
	j.look = look
	_, err := d.wait(j)
	result := "ok"
	if err != nil {
		result = string(events.AsError(err).Code)
	}
	d.metrics.Done(c.Parts[0].Name, result, time.Since(start).Seconds())
	return j.commit, err
}

// Look lets look see the state of a thread as the log has it now. look must not
// keep the state, or wait.
func (d *Dispatcher) Look(ctx context.Context, tenant, id string, look func(*thread.State)) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	_, err := d.wait(lookJob(ctx, tenant, id, look))
	return err
}

// Queued returns what waits for a thread's agent, as the log has it now. The error
// is a not_found if there is no such thread.
func (d *Dispatcher) Queued(ctx context.Context, tenant, id string) (*events.QueueList, error) {
	list := &events.QueueList{ThreadID: id}
	there := false
	err := d.Look(ctx, tenant, id, func(s *thread.State) {
		there, list.Queued, list.Active, list.Seq = s.Exists(), s.Queued(), s.Active(), int64(s.Seq)
	})
	if err == nil && !there {
		err = events.Missing("thread", id)
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Inside does a command of one part as Run does, and gives the events that are
// the command's own.
func (d *Dispatcher) Inside(ctx context.Context, tenant, threadID, commandID, name string, data any) ([]events.Event, error) {
	commit, err := d.Run(ctx, &thread.Command{
		ID: commandID, Tenant: tenant, ThreadID: threadID, Parts: []thread.Part{{Name: name, Data: data}},
	}, nil)
	if err != nil || commit == nil {
		return nil, err
	}
	var made []events.Event
	for i := range commit.Events {
		if commit.Events[i].CommandID == commandID {
			made = append(made, commit.Events[i])
		}
	}
	return made, nil
}
