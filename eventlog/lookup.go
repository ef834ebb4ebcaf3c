package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// lookUp asks the log whether a unit was stored by an earlier try. The first
// commit of each aggregate after the expected sequence tells: it is ours if it
// has our chain. It returns true if all are stored; false and nil if none is
// there; a *ConflictError if an aggregate has moved on without us; or why the
// log could not be asked.
func (l *Log) lookUp(u *unit) (bool, error) {
	var seqs []uint64
	for _, w := range u.writes {
		subject := l.cfg.Names.Log(w.Commit.Tenant, w.Commit.Thread)
		m, err := l.conn.Leader(context.Background(), l.cfg.Names.Stream(assets.LogStream), streams.GetRequest{Seq: w.Expected + 1, Next: subject})
		switch {
		case errors.Is(err, streams.ErrNoMessage):
			continue
		case err != nil:
			return false, err
		case m.Header.Get(events.HeaderChain) != w.Commit.Chain:
			return false, &ConflictError{Subject: subject, Expected: w.Expected, Last: m.Seq}
		}
		seqs = append(seqs, m.Seq)
	}
	switch len(seqs) {
	case len(u.writes):
		for i := range u.writes {
			u.writes[i].Commit.Seq = seqs[i]
		}
		l.cfg.Writing.Stored()
		return true, nil
	case 0:
		return false, nil
	}
	return false, fmt.Errorf("%d of %d commits of one write are stored: the log contradicts itself", len(seqs), len(u.writes))
}
