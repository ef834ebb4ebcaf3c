package client

import (
	"context"
	"errors"
	"iter"

	"github.com/skein-threads/skein/events"
)

// EventOf is an event whose data is a T.
type EventOf[T any] struct {
	Event
	Data T
}

// Subscribe subscribes to the events whose data is a T, such as an [events.ItemCreated], and returns
// them as they come, until ctx ends or the loop is left. Of the options it sets Types.
//
//	created, err := client.Subscribe[events.ItemCreated](ctx, c, client.SubscribeOptions{From: client.Now()})
//	...
//	for e, err := range created {
//		...
//		fmt.Println(e.ThreadID, e.Data.Item.Type)
//	}
//
// When Subscribe returns, no later event will be missed. It is a [Timeline]: each event comes once
// and in the order of the log, a history ends without an error, and the loop may continue after an
// *events.BrokenError. The events can be ranged over once. The error is an invalid_request if no
// event that is stored has data of type T, else the timeline's error.
func Subscribe[T any](ctx context.Context, c *Client, o SubscribeOptions) (iter.Seq2[EventOf[T], error], error) {
	row, ok := events.RowOf(*new(T))
	if !ok || row.Transient {
		return nil, events.Invalid("", "no event that is stored has data of type %T; see events.Catalog", *new(T))
	}
	o.Types = []string{string(row.Type)}
	t, err := c.Timeline(ctx, o)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, t.cancel) // also if nobody ranges over it
	return func(yield func(EventOf[T], error) bool) {
		defer t.Close()
		for e, err := range t.All(ctx) {
			of := EventOf[T]{Event: e}
			if err == nil {
				of.Data, err = dataOf[T](c, &e)
			}
			if !yield(of, err) {
				return
			}
		}
	}, nil
}

// dataOf returns the data of an event. That which a newer version of Skein has written is a
// *events.BrokenError.
func dataOf[T any](c *Client, e *Event) (data T, err error) {
	data, is := e.Data.(T)
	if unknown, newer := e.Data.(events.Unknown); !is && newer {
		err = &events.BrokenError{Tenant: c.opts.Tenant, Thread: e.ThreadID, Seq: uint64(e.Seq), Cause: errors.New(unknown.Reason)}
	}
	return data, err
}
