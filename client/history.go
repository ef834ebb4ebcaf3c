package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// logPage is how many events are requested at once.
const logPage = 1000

// HistoryEnd returns the sequence of the log's last commit, of any tenant.
func (c *Client) HistoryEnd(ctx context.Context) (int64, error) {
	end, err := Read(ctx, c, events.GetHistory{})
	if err != nil {
		return 0, err
	}
	return end.LastSeq, nil
}

// readLog reads the log's events from the follower's position to the current end of the
// log.
func (f *follower) readLog(ctx context.Context) error {
	for {
		from, limit := f.seq+1, int64(logPage)
		q := events.ListHistory{ThreadID: f.o.Thread, FromSeq: &from, Limit: &limit}
		if f.version != whole && f.seq > 0 { // the commit was not delivered whole
			from--
			q.AfterVersion = new(f.version)
		}
		page, err := Read(ctx, f.client, q)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if err := f.deliverStored(e); err != nil {
				return err
			}
		}
		if len(page.Entries) > 0 && (page.NextSeq > f.seq || page.NextSeq == 0) {
			f.notePassed(f.seq) // the last commit was delivered whole
		}
		if page.NextSeq == 0 {
			return nil
		}
		if page.NextSeq > f.seq+1 { // the rest up to there is not shown to this client
			f.notePassed(page.NextSeq - 1)
		}
	}
}

// deliverStored handles an entry of the log. The commit before it is complete.
func (f *follower) deliverStored(entry events.HistoryEntry) error {
	if entry.Seq > f.seq {
		f.notePassed(f.seq)
	}
	var err error
	if entry.Broken {
		err = &events.BrokenError{Tenant: f.client.opts.Tenant, Thread: entry.ThreadID, Seq: uint64(entry.Seq), Cause: errBroken}
	} else {
		var e events.Event
		if e, err = events.DecodeEvent(entry.Event); err == nil {
			if !f.isNew(entry.Seq, e.Version) {
				return nil
			}
			return f.deliverEvent(Event{Event: e, Seq: entry.Seq})
		}
		err = &events.BrokenError{Tenant: f.client.opts.Tenant, Seq: uint64(entry.Seq), Cause: err}
	}
	f.notePassed(entry.Seq)
	delete(f.versions, entry.ThreadID)
	if entry.ThreadID != "" && !f.o.Aggregates && !events.IsThread(entry.ThreadID) {
		return nil
	}
	if !f.deliver(result{event: Event{Seq: entry.Seq}, err: err}) {
		return errGone
	}
	return nil
}
