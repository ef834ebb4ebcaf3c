package runstream

import (
	"context"
	"slices"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Begun returns an execution as the commit of a reply created it, nil if that did not. It reads the log,
// and so waits for no read model.
func Begun(ctx context.Context, c *client.Client, reply *events.Reply, id string) (*events.Execution, error) {
	at := slices.IndexFunc(reply.Events, func(e events.EventRef) bool { return e.Type == events.ExecutionCreatedType })
	if at < 0 {
		return nil, nil
	}
	page, err := client.Read(ctx, c, events.ListHistory{
		ThreadID: reply.ThreadID, FromSeq: &reply.Seq, AfterVersion: new(reply.Events[at].Version - 1), Limit: new(int64(len(reply.Events) - at)),
	})
	if err != nil {
		return nil, err
	}
	var x *events.Execution
	for _, entry := range page.Entries {
		e, err := events.DecodeEvent(entry.Event)
		if err != nil || entry.Seq != reply.Seq {
			return nil, err
		}
		switch d := e.Data.(type) {
		case events.ExecutionCreated:
			if d.ID == id {
				x = d.Document(reply.ThreadID, e.Time)
				x.Stamp = events.Stamp{Version: reply.Version, Seq: reply.Seq}
			}
		case events.RunRequested:
			if x != nil && e.Subject == id {
				x.Requested(d)
				return x, nil
			}
		}
	}
	return nil, nil // the page has not all of a large commit
}
