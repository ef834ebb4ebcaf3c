package cli

import (
	"context"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// known holds the parts of a conversation that the log already has.
type known struct {
	commands map[string]bool   // ids of the commands that were done
	made     map[string]bool   // ids of the items that were made
	stepOf   map[string]string // the execution of each step that was made
	ended    map[string]bool   // ids of the executions that have ended
}

// nothing is the known of a new thread.
func nothing() known {
	return known{commands: map[string]bool{}, made: map[string]bool{}, stepOf: map[string]string{}, ended: map[string]bool{}}
}

// learn reads a thread's events. A thread that was deleted is not_found.
func learn(ctx context.Context, c *client.Client, thread string) (known, error) {
	k := nothing()
	from := int64(1)
	limit := int64(1000)
	for {
		page, err := client.Read(ctx, c, events.ListEvents{ThreadID: thread, FromVersion: &from, Limit: &limit})
		if err != nil {
			return k, err
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				return k, events.Errorf(events.Unavailable, "an event that cannot be read: %w", err)
			}
			if e.Type == events.LifecycleDeletedType {
				return k, events.Missing("thread", thread)
			}
			k.add(&e)
		}
		if page.NextVersion == 0 {
			return k, nil
		}
		from = page.NextVersion
	}
}

func (k known) add(e *events.Event) {
	k.commands[e.CommandID] = true
	switch d := e.Data.(type) {
	case events.ItemCreated:
		k.made[d.ID] = true
	case events.StepCreated:
		k.stepOf[d.ID] = d.ExecutionID
	case events.ExecutionStatusChanged:
		k.ended[e.Subject] = true
	}
}
