package commands

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Inside does a command of this process's own on a thread, such as
// thread.StartEffect, which the catalog does not have and nobody can ask for over
// NATS. It gives the command's events. A commandID that was used before gives
// the first answer again. The error is an *events.Error, or what the decision says.
func (d *Dispatcher) Inside(ctx context.Context, tenant, threadID, commandID, name string, data any) ([]events.Event, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	j := &job{ctx: ctx, done: make(chan answer, 1), command: &thread.Command{
		ID: commandID, Tenant: tenant, ThreadID: threadID, Time: events.TimeOf(d.cfg.Now()),
		Parts: []thread.Part{{Name: name, Data: data}},
	}}
	_, err := d.queueJob(j)
	result := "ok"
	if err != nil {
		result = string(events.AsError(err).Code)
	}
	d.metrics.Done(name, result, time.Since(start).Seconds())
	if err != nil || j.commit == nil {
		return nil, err
	}
	var made []events.Event
	for i := range j.commit.Events {
		if j.commit.Events[i].CommandID == commandID {
			made = append(made, j.commit.Events[i])
		}
	}
	return made, nil
}
