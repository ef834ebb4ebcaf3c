package query

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// consumerWait is how long an event is waited for if the query does not say.
const consumerWait = 5 * time.Second

// typePattern is what may stand in a list of types: item.created, item.* or *.
var typePattern = regexp.MustCompile(`^([a-z]+(\.[a-z]+)*(\.\*)?|\*)$`)

// createConsumer creates a consumer that sees the tenant's part of the timeline
// and no other.
func (a *asking) createConsumer(d events.CreateConsumer) (*events.ConsumerRef, error) {
	thread := "*"
	if d.ThreadID != "" {
		if err := a.resolve(d.ThreadID); err != nil {
			return nil, err
		}
		thread = a.thread
	}
	names := a.log.Config().Names
	types := d.Types
	if len(types) == 0 {
		types = []string{"*"}
	}
	var subjects []string
	for i, t := range types {
		if !typePattern.MatchString(t) {
			return nil, events.Invalid("/types/"+strconv.Itoa(i), "%.64q is no event type; give item.created, or item.* for all of an entity", t)
		}
		if entity, all := strings.CutSuffix(t, "*"); all {
			t = entity + ">"
		}
		subjects = append(subjects, names.Timeline(a.tenant, thread, events.Type(t)))
	}
	if err := timeline.ConsumersOf(a.log).Put(a.ctx, a.tenant, d.Name, subjects, d.New); err != nil {
		return nil, err
	}
	return &events.ConsumerRef{Name: d.Name}, nil
}

// nextOfConsumer returns the next event.
func (a *asking) nextOfConsumer(d events.NextOfConsumer) (*events.Delivery, error) {
	wait := consumerWait
	if d.WaitMs != nil {
		wait = time.Duration(*d.WaitMs) * time.Millisecond
	}
	got, err := timeline.ConsumersOf(a.log).Next(a.ctx, a.tenant, d.Name, wait)
	switch {
	case errors.Is(err, timeline.ErrNoConsumer):
		return nil, events.Missing("consumer", d.Name)
	case err != nil:
		return nil, err
	case got == nil:
		return &events.Delivery{}, nil
	}
	return &events.Delivery{Event: got.Data, Seq: int64(got.Seq), Token: got.Token}, nil
}

// settleConsumer records what became of an event.
func (a *asking) settleConsumer(d events.SettleConsumer) (*events.ConsumerRef, error) {
	return &events.ConsumerRef{Name: d.Name}, timeline.ConsumersOf(a.log).Settle(a.ctx, a.tenant, d.Name, d.Token, d.As)
}

// deleteConsumer deletes a consumer.
func (a *asking) deleteConsumer(d events.DeleteConsumer) (*events.ConsumerRef, error) {
	return &events.ConsumerRef{Name: d.Name}, timeline.ConsumersOf(a.log).Delete(a.ctx, a.tenant, d.Name)
}
