package query

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// consumerWait is how long a query waits for an event by default.
const consumerWait = 5 * time.Second

// typePattern matches an element of a list of types: item.created, item.* or *.
var typePattern = regexp.MustCompile(`^([a-z]+(\.[a-z]+)*(\.\*)?|\*)$`)

// createConsumer creates a consumer of the tenant's part of the timeline.
func createConsumer(a *asking, d events.CreateConsumer) (*events.ConsumerRef, error) {
	if _, err := a.checkLog(d.Log); err != nil {
		return nil, err
	}
	from := timeline.Start{New: d.New}
	if d.FromSeq != nil {
		if d.New {
			return nil, events.Invalid("/fromSeq", "a consumer begins with new events, or with a commit; leave out new or fromSeq")
		}
		from.Seq = uint64(*d.FromSeq)
		end, err := a.logEnd()
		if err == nil {
			err = end.CheckPosition(d.Log, *d.FromSeq-1)
		}
		if err != nil {
			return nil, err
		}
	}
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
	if err := timeline.ConsumersOf(a.log).Put(a.ctx, a.tenant, d.Name, subjects, from); err != nil {
		return nil, err
	}
	return &events.ConsumerRef{Name: d.Name}, nil
}

// nextOfConsumer returns the next event, or a batch.
func nextOfConsumer(a *asking, d events.NextOfConsumer) (*events.Delivery, error) {
	wait := consumerWait
	if d.WaitMs != nil {
		wait = time.Duration(*d.WaitMs) * time.Millisecond
	}
	out, consumers := &events.Delivery{}, timeline.ConsumersOf(a.log)
	var err error
	if d.Limit == nil {
		var got *timeline.Delivery
		if got, err = consumers.Next(a.ctx, a.tenant, d.Name, wait); got != nil {
			out.Event, out.Seq, out.Token = got.Data, int64(got.Seq), got.Token
		}
	} else {
		var got *timeline.Batch
		if got, err = consumers.NextBatch(a.ctx, a.tenant, d.Name, timeline.BatchSize{Events: int(*d.Limit), Bytes: a.answerBytes()}, wait); got != nil {
			out.Gap, out.Token = got.Gap, got.Token
			for _, e := range got.Events {
				out.Entries = append(out.Entries, events.HistoryEntry{Seq: int64(e.Seq), Event: e.Data})
			}
		}
	}
	if errors.Is(err, timeline.ErrNoConsumer) {
		err = events.Missing("consumer", d.Name)
	}
	return out, err
}

// settleConsumer acknowledges or rejects an event.
func settleConsumer(a *asking, d events.SettleConsumer) (*events.ConsumerRef, error) {
	err := timeline.ConsumersOf(a.log).Settle(a.ctx, a.tenant, d.Name, d.Token, d.As)
	if errors.Is(err, timeline.ErrNoConsumer) {
		err = events.Missing("consumer", d.Name)
	}
	return &events.ConsumerRef{Name: d.Name}, err
}

// deleteConsumer deletes a consumer.
func deleteConsumer(a *asking, d events.DeleteConsumer) (*events.ConsumerRef, error) {
	return &events.ConsumerRef{Name: d.Name}, timeline.ConsumersOf(a.log).Delete(a.ctx, a.tenant, d.Name)
}

// The bucket in which package webhooks stores positions, and the key of the common position of
// webhooks with nothing to deliver.
const (
	webhooksBucket   = "thread_webhooks"
	webhooksPosition = "position"
)

// listWebhooks returns the last stored positions of the tenant's webhooks.
func listWebhooks(a *asking, _ events.ListWebhooks) (*events.WebhookList, error) {
	docs, err := a.log.Bucket(webhooksBucket).All(a.ctx, a.tenant+"."+string(events.WebhookKind)+".*", webhooksPosition)
	if err != nil {
		return nil, err
	}
	list := &events.WebhookList{Webhooks: []events.Webhook{}}
	var position struct {
		Seq int64 `json:"seq"`
	}
	for _, m := range docs {
		if m.Subject == webhooksPosition {
			err = json.Unmarshal(m.Data, &position)
		} else {
			var one events.Webhook
			err = json.Unmarshal(m.Data, &one)
			list.Webhooks = append(list.Webhooks, one)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range list.Webhooks {
		if one := &list.Webhooks[i]; !one.Full {
			one.Seq = max(one.Seq, position.Seq)
		}
	}
	slices.SortFunc(list.Webhooks, func(a, b events.Webhook) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}
