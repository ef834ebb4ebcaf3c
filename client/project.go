package client

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/events"
)

// Projector stores what projections derive from events, and the position of each with it. Tx is a
// transaction of the place where it stores them. [SQL] is one for databases.
type Projector[Tx any] interface {
	// Position returns the position of the last event that a projection has applied, the zero
	// Position if there is none.
	Position(ctx context.Context, projection string) (events.Position, error)

	// Update calls apply in a transaction that also moves a projection from one position to another,
	// and stores both or neither. If the projection is not at the first position, it stores nothing,
	// and returns ErrMoved.
	Update(ctx context.Context, projection string, from, to events.Position, apply func(Tx) error) error
}

// ErrMoved reports that a projection is elsewhere: another process has moved it.
var ErrMoved = errors.New("the projection was moved by another process")

// projectMost is how many events one transaction applies at most.
const projectMost = 256

// Project applies each event that o selects to a projection, in the order of the log: first the
// whole log, and then what is committed, until ctx ends. apply stores what becomes of an event, in a
// transaction that stores the projection's position too, so that each event counts exactly once,
// whenever the process or the database stops. The projection continues behind its position when
// Project is called again; o.From is only where one begins that has none. With o.History Project
// returns nil at the end of the log.
//
// Several processes may call Project for one projection: one of them applies an event, and the others
// go on behind it. One transaction applies up to 256 events, those that are there already.
//
// Project repeats what fails because the server is unavailable. It returns any other error, of the
// Projector, of apply, of ctx and of the timeline, and nothing of the transaction is stored: call it
// again to try again. A position_ahead says that the log was restored to an earlier state, or
// replaced: clear the projection with [Reproject]. An *events.BrokenError says that a commit cannot
// be decoded; a position behind it leaves it out.
func Project[Tx any](ctx context.Context, c *Client, projection string, in Projector[Tx], o SubscribeOptions, apply func(context.Context, Tx, Event) error) error {
	o.Chunks = false // they have no position
	for attempts := requests().Start(); ; {
		p := projecting[Tx]{client: c, name: projection, in: in, options: o, apply: apply}
		err := p.run(ctx)
		if p.applied {
			attempts.Reset()
		}
		switch {
		case errors.Is(err, ErrMoved):
		case events.HasCode(err, events.Unavailable) && !c.nc.IsClosed() && attempts.Wait(ctx) == nil:
		default:
			return err
		}
	}
}

// Reproject makes a projection begin again: it calls clear, which removes what was derived, in the
// transaction that removes the projection's position.
func Reproject[Tx any](ctx context.Context, projection string, in Projector[Tx], clear func(Tx) error) error {
	for {
		at, err := in.Position(ctx, projection)
		if err != nil {
			return err
		}
		if err := in.Update(ctx, projection, at, events.Position{}, clear); !errors.Is(err, ErrMoved) {
			return err
		}
	}
}

// projecting applies events to a projection until the first error.
type projecting[Tx any] struct {
	client  *Client
	name    string
	in      Projector[Tx]
	options SubscribeOptions
	apply   func(context.Context, Tx, Event) error
	applied bool // at least one transaction was stored
}

func (p *projecting[Tx]) run(ctx context.Context) error {
	at, err := p.in.Position(ctx, p.name)
	if err != nil {
		return err
	}
	o := p.options
	if at.Seq > 0 {
		o.From = After(at)
	}
	t, err := p.client.Timeline(ctx, o)
	if err != nil {
		return err
	}
	defer t.Close()
	for {
		list, end := t.nextBatch(ctx, projectMost)
		if len(list) > 0 {
			to := t.Position(list[len(list)-1])
			if err := p.in.Update(ctx, p.name, at, to, p.applying(ctx, list)); err != nil {
				return err
			}
			at, p.applied = to, true
		}
		if errors.Is(end, ErrEnd) {
			return nil
		}
		if end != nil {
			return end
		}
	}
}

// applying returns the function that applies events in a transaction.
func (p *projecting[Tx]) applying(ctx context.Context, list []Event) func(Tx) error {
	return func(tx Tx) error {
		for _, e := range list {
			if err := p.apply(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	}
}

// nextBatch waits for the next event, and returns it with those that are there already. The error
// comes after the events that are returned with it.
func (t *Timeline) nextBatch(ctx context.Context, most int) (list []Event, err error) {
	for len(list) == 0 || len(list) < most && len(t.out) > 0 {
		e, err := t.Next(ctx)
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
	return list, nil
}
