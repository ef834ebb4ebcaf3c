package events

// Queries of durable consumers. A consumer reads the tenant's timeline, and its position is
// stored under a name that all processes sharing the work use.
type (
	// CreateConsumer creates a consumer, or changes its filter. It begins with the oldest event of
	// the timeline unless New or FromSeq is set. Where a consumer began cannot be changed.
	CreateConsumer struct {
		Name     string   `json:"name" schema:"required,pattern=tenant" doc:"The consumer's name, the tenant's own."`
		ThreadID string   `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"Only events of this thread."`
		Types    []string `json:"types,omitzero" schema:"maxItems=64" doc:"Only events of these types; item.* takes all of an entity."`
		New      bool     `json:"new,omitzero" doc:"Begin with events after the creation, instead of all of the timeline."`
		FromSeq  *int64   `json:"fromSeq,omitzero" schema:"minimum=1" doc:"Begin with this commit of the log. A commit that has left the timeline is refused, with the first one still there in details.seq. A sequence beyond the next commit is refused with position_ahead."`
		Log      string   `json:"log,omitzero" schema:"pattern=id" doc:"The log of fromSeq, from history.get; another is refused with position_ahead."`
	}
	// NextOfConsumer returns the next event, or the next events if Limit is set. It waits for one
	// if there is none.
	NextOfConsumer struct {
		Name   string `json:"name" schema:"required,pattern=tenant" doc:"The consumer's name."`
		Limit  *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"Deliver up to so many events together, in entries, waiting for the first of them only."`
		WaitMs *int64 `json:"waitMs,omitzero" schema:"minimum=0,maximum=10000" doc:"How long to wait for an event, in milliseconds; 5000 if absent."`
	}
	// Delivery is what a consumer delivered: an event, or with a limit a batch of them, which is
	// settled as a whole. It is redelivered, to any process that asks, if it is not settled within
	// 30 s. Until it is settled the consumer delivers nothing else.
	Delivery struct {
		Event   JSON           `json:"event,omitzero" doc:"A CloudEvent. Absent if none came, or if there are entries."`
		Seq     int64          `json:"seq,omitzero" schema:"minimum=1" doc:"The sequence in the log of the event's commit."`
		Entries []HistoryEntry `json:"entries,omitzero" doc:"With a limit: the events, in the order of the log. Absent if none came."`
		Gap     bool           `json:"gap,omitzero" doc:"With a limit: events may have left the timeline undelivered; history.list has them. Repeated until the batch is settled as done."`
		Token   string         `json:"token,omitzero" doc:"Names the delivery, for consumer.settle. Absent if none came."`
	}
	// SettleConsumer settles a delivery.
	SettleConsumer struct {
		Name  string     `json:"name" schema:"required,pattern=tenant" doc:"The consumer's name."`
		Token string     `json:"token" schema:"required,maxLength=512" doc:"The delivery's token."`
		As    Settlement `json:"as" schema:"required" doc:"done (acknowledge it), busy (work continues) or again (redeliver it now)."`
	}
	// DeleteConsumer deletes a consumer and its position.
	DeleteConsumer struct {
		Name string `json:"name" schema:"required,pattern=tenant" doc:"The consumer's name."`
	}
	// ConsumerRef names a consumer.
	ConsumerRef struct {
		Name string `json:"name" schema:"required" doc:"The consumer's name."`
	}
)

// Queries of webhooks.
type (
	// ListWebhooks asks for the tenant's webhooks, and how far each is.
	ListWebhooks struct{}
	// WebhookList is the tenant's webhooks, by name.
	WebhookList struct {
		Webhooks []Webhook `json:"webhooks" schema:"required" doc:"The webhooks, by name."`
	}
	// Webhook is how far the deliveries of a webhook are. It is a second old at most.
	Webhook struct {
		Name         string `json:"name" schema:"required,pattern=name" doc:"The name of its definition."`
		Seq          int64  `json:"seq" schema:"required,minimum=0" doc:"Events up to this sequence of the log were delivered, except those of threads that are behind."`
		Delivered    int64  `json:"delivered" schema:"required,minimum=0" doc:"How many events were delivered."`
		Behind       int64  `json:"behind" schema:"required,minimum=0" doc:"How many threads have events that were not delivered yet."`
		Full         bool   `json:"full,omitzero" doc:"So many threads are behind that further events wait in the log."`
		Failures     int64  `json:"failures,omitzero" schema:"minimum=0" doc:"How many attempts have failed since one succeeded."`
		FailingSince string `json:"failingSince,omitzero" schema:"pattern=time" doc:"When the first of them failed."`
		LastError    string `json:"lastError,omitzero" doc:"Why the last failed attempt failed."`
	}
)

// Settlement is the outcome of a delivery.
type Settlement string

// The outcomes of a delivery.
const (
	SettledDone  Settlement = "done"
	SettledBusy  Settlement = "busy"
	SettledAgain Settlement = "again"
)

// Enum lists the settlements.
func (Settlement) Enum() []string {
	return []string{string(SettledDone), string(SettledBusy), string(SettledAgain)}
}
