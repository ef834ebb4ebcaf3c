package commands

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Run runs a command of this process, rather than of a client. Its parts may be commands of
// workers, such as thread.ClaimRun, that a client cannot send. It is not validated by a schema.
// Run returns the stored commit, which may also hold the events of other commands, or nil if the
// command changed nothing. If look is not nil, it sees the state after the command; it must not
// retain the state, or block.
//
// The error is a refusal, as Do returns it, or an error of the decision, such as a
// *thread.LostRunError. The command's id makes a repeat safe; a repeat returns the first
// commit.
func (d *Dispatcher) Run(ctx context.Context, c *thread.Command, look func(*thread.State)) (*events.Commit, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	start := time.Now()
	c.Time, c.Inside = events.TimeOf(d.cfg.Now()), true
	j := commandJob(ctx, internal, c)
	j.look = look
	_, err := d.decideJob(j)
	result := "ok"
	if err != nil {
		result = string(events.AsError(err).Code)
	}
	d.metrics.Done(c.Parts[0].Name, result, time.Since(start).Seconds())
	return j.commit, err
}

// Look passes the current state of a thread to look, which must not retain it, or block.
func (d *Dispatcher) Look(ctx context.Context, tenant, id string, look func(*thread.State)) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	_, err := d.runJob(lookJob(ctx, tenant, id, look))
	return err
}

// Queued returns the current queue of a thread's agent. The error is a not_found if there is
// no such thread.
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

// Inside runs a command of one part as Run does, and returns the command's own events.
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
