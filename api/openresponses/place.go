package openresponses

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// place is where a run is to happen.
type place struct {
	thread  string            // empty: a new one
	version *int64            // that the thread must have
	kept    bool              // it is a temporary thread already
	title   string            // of a thread that is to be forked
	seen    int64             // the sequence of what is known of that
	forks   *events.Execution // the thread is forked at this response first
}

// basis is the conversation or the response that a request continues from. It is read once.
type basis struct {
	client *client.Client // shows at least as much; nil: the request continues from nothing
	thread *events.Thread // the conversation
	leg    *leg           // the response; nil: there is no such one
}

// basisOf returns what a request continues from.
func basisOf(ctx context.Context, c *edge.Caller, d *createRequest) (on basis, err error) {
	switch {
	case d.Conversation != nil:
		on.client, on.thread, err = conversationOf(ctx, c, d.Conversation)
	case d.PreviousResponseID != "" && d.warmed == "":
		if on.client, err = c.Client.UpToDate(ctx); err != nil {
			return basis{}, err
		}
		l, err := legOf(ctx, on.client, d.PreviousResponseID)
		switch {
		case err == nil:
			on.leg = &l
		case !events.IsNotFound(err):
			return basis{}, err
		}
	}
	return on, err
}

// upToDate returns a client that shows at least what was committed before the request.
func (on *basis) upToDate(ctx context.Context, c *edge.Caller) (*client.Client, error) {
	if on.client != nil {
		return on.client, nil
	}
	return c.Client.UpToDate(ctx)
}

// placeOf returns where the run of a request is to happen. The thread of a previous response
// that is not its last is to be forked.
func placeOf(ctx context.Context, d *createRequest, on basis, own func(string) bool) (place, error) {
	switch {
	case on.thread != nil:
		return place{thread: on.thread.ID, version: d.version}, nil
	case d.PreviousResponseID == "":
		return place{}, nil
	case d.warmed != "":
		return place{thread: d.warmed, kept: !d.stored()}, nil
	case on.leg == nil:
		return place{}, noPrevious(d.PreviousResponseID)
	}
	x, temporary := on.leg.x, on.leg.temporary()
	if temporary && !own(x.ThreadID) {
		return place{}, noPrevious(d.PreviousResponseID)
	}
	if !x.Finished {
		return place{}, events.Invalid("/previous_response_id", "response %s has not ended; wait for it, or cancel it", clipped(d.PreviousResponseID))
	}
	t, err := client.Read(ctx, on.client, events.GetThread{ThreadID: x.ThreadID})
	if err != nil {
		return place{}, err
	}
	list, err := client.Read(ctx, on.client, events.ListItems{ThreadID: x.ThreadID, Order: "desc", Limit: new(int64(1))})
	if err != nil {
		return place{}, err
	}
	last := len(list.Items) == 1 && (list.Items[0].ID == x.LastItem() || list.Items[0].ParentItemID == x.LastItem())
	if last && t.Run == nil && temporary == !d.stored() {
		return place{thread: x.ThreadID, version: &t.Version, kept: temporary}, nil
	}
	return place{thread: x.ThreadID, title: t.Title, seen: t.Seq, forks: x}, nil
}

// forked forks the thread of a response at that response.
func forked(ctx context.Context, c *edge.Caller, x *events.Execution, title, key string, id uuid.UUID) (place, error) {
	// The thread may get another title before a repeat: that fork is another command, whose key is taken.
	command := "openresponses-fork-" + uuid.NewSHA1(id, []byte(title)).String()
	reply, err := c.Client.Send(ctx, x.ThreadID, events.ForkThread{ItemID: x.LastItem(), Key: key, Title: title}, client.CommandID(command))
	if key != "" && events.HasCode(err, events.AlreadyExists) && !events.IsTakenByDeleted(err) {
		return repeatedFork(ctx, c, x.ThreadID, key)
	}
	if err != nil {
		if events.HasCode(err, events.NotFound, events.InvalidRequest) { // it is deleted: its items are not shown
			return place{}, noPrevious("resp_" + strings.TrimPrefix(x.ID, events.ExecutionPrefix))
		}
		return place{}, err
	}
	if reply.Result == nil || reply.Result.ChildID == "" {
		return place{}, events.Errorf(events.Unavailable, "the fork of thread %s has no id", x.ThreadID)
	}
	c.Client = c.Client.WithMinSeq(reply.Seq)
	return place{thread: reply.Result.ChildID}, nil
}

// repeatedFork returns the fork of a thread that an earlier request with the same body and
// Idempotency-Key has made.
func repeatedFork(ctx context.Context, c *edge.Caller, thread, key string) (place, error) {
	now, err := c.Client.UpToDate(ctx)
	if err != nil {
		return place{}, err
	}
	fork, err := client.Read(ctx, now, events.GetThread{ThreadID: "key:" + key})
	switch {
	case err != nil:
		return place{}, err
	case fork.OriginThreadID != thread: // somebody else has taken the key
		return place{}, edge.ReusedKey(edge.HeaderKey)
	}
	c.Client = now
	return place{thread: fork.ID}, nil
}
