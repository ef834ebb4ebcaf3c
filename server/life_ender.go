package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/documents"
)

// livesLease is the lease under which one process ends lives.
const livesLease = "lives"

const (
	livesEvery  = 5 * time.Second
	livesAfresh = 10 * time.Minute // all of the read model is read again: it may have been created again meanwhile
	livesPage   = 500
)

// lifeEnder ends the lives of threads' key-value states whose time is over, and clears those whose
// listeners do not come. The log is the truth: a life that is due is over for readers and writers
// even if it was not ended, and ending it twice changes nothing. So there are no timers that could
// be lost: one process reads the read model of lives, and after that what changes in it. A lifeEnder
// is for one goroutine.
type lifeEnder struct {
	log        *eventlog.Log
	dispatcher *commands.Dispatcher
	now        func() time.Time
	logger     zerolog.Logger

	from uint64               // the first sequence of the bucket that was not read
	due  map[life]events.Time // when something is due of a life, as far as the read model was read
}

// life names a life of a thread's state.
type life struct {
	tenant, thread string
	n              int64
}

// newLifeEnder returns an ender. now is the clock by which lives are due; nil: time.Now.
func newLifeEnder(log *eventlog.Log, dispatcher *commands.Dispatcher, now func() time.Time, logger zerolog.Logger) *lifeEnder {
	if now == nil {
		now = time.Now
	}
	return &lifeEnder{log: log, dispatcher: dispatcher, now: now, logger: logger, due: map[life]events.Time{}}
}

// Run ends what is due until ctx ends. Run it under livesLease.
func (e *lifeEnder) Run(ctx context.Context) error {
	begun := time.Now()
	for ctx.Err() == nil {
		if time.Since(begun) > livesAfresh {
			begun, e.from, e.due = time.Now(), 0, map[life]events.Time{}
		}
		if _, err := e.End(ctx); err != nil && ctx.Err() == nil {
			e.logger.Warn().Err(err).Msg("cannot end the lives of states now; it is retried")
		}
		retry.Sleep(ctx, livesEvery)
	}
	return nil
}

// maxFailedLives is after how many lives that could not be ended the others wait.
const maxFailedLives = 10

// End ends the lives that are due, and returns their number. One that cannot be ended now delays
// no other.
func (e *lifeEnder) End(ctx context.Context) (int, error) {
	if err := e.read(ctx); err != nil {
		return 0, err
	}
	now, ended := events.TimeOf(e.now()), 0
	var failed []error
	for l, due := range e.due {
		if due > now {
			continue
		}
		if len(failed) == maxFailedLives {
			break
		}
		next, more := events.Time(0), false
		_, err := e.dispatcher.Run(ctx, &thread.Command{
			ID: uuid.Must(uuid.NewV7()).String(), Tenant: l.tenant, ThreadID: l.thread,
			Parts: []thread.Part{{Name: "state.expire", Data: thread.ExpireState{Life: l.n}}},
		}, func(s *thread.State) { next, more = s.LifeDue(l.n) })
		switch {
		case err != nil && !events.IsNotFound(err):
			failed = append(failed, fmt.Errorf("end life %d of the state of %s/%s: %w", l.n, l.tenant, l.thread, err))
		case err == nil && more:
			e.due[l] = next // it was renewed, or is waited for
		default:
			delete(e.due, l)
			ended++
		}
	}
	return ended, errors.Join(failed...)
}

// read reads what changed in the read model.
func (e *lifeEnder) read(ctx context.Context) error {
	model := documents.NewModels().Of(documents.Lives)
	for {
		got, err := e.log.Bucket(model.Bucket).Range(ctx, ">", e.from, livesPage)
		if err != nil {
			return fmt.Errorf("read the lives of states: %w", err)
		}
		for _, m := range got {
			e.from = m.Seq + 1
			place, ok := documents.ParsePlace(documents.Lives, m.Subject)
			if !ok {
				continue
			}
			doc, _, err := model.Decode(m.Data)
			if err != nil {
				continue // the runner reports it
			}
			d := doc.(*events.Life)
			tenant, _, _ := strings.Cut(place.Thread, ".")
			e.due[life{tenant, d.ThreadID, d.Life}] = events.Time(d.Until)
		}
		if len(got) < livesPage {
			return nil
		}
	}
}
