package query

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// The bucket in which package webhooks stores how far they are, and the key of the position up
// to which those are that have nothing to deliver.
const (
	webhooksBucket   = "thread_webhooks"
	webhooksPosition = "position"
)

// listWebhooks returns how far the tenant's webhooks are, as it was stored last.
func (a *asking) listWebhooks(events.ListWebhooks) (*events.WebhookList, error) {
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
