package commands

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/internal/retry"
)

// submitted executes one command, and retries it until it succeeds or is refused. If its sequence
// is at most seen, it may have been executed or refused before. Each attempt holds one of limit's
// places.
func (d *Dispatcher) submitted(ctx context.Context, m jetstream.Msg, seen uint64, limit *shareLimiter) {
	_, tenant, name, ok := d.log.Config().Names.ParseRequest(m.Subject())
	if !ok || !events.ValidTenant(tenant) {
		d.logger.Error().Msg("dropped a submitted command without a valid tenant")
		_ = m.Term()
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		d.logger.Error().Err(err).Msg("submitted command has no metadata")
		return
	}
	id := "submit-" + strconv.FormatUint(meta.Sequence.Stream, 10)
	again := meta.Sequence.Stream <= seen || meta.NumDelivered > 1
	for attempts := (retry.Policy{First: 50 * time.Millisecond, Max: 5 * time.Second}).Start(); ctx.Err() == nil; {
		limit.acquire()
		err := d.submit(ctx, tenant, name, id, m, again)
		limit.release()
		if err == nil {
			d.takeOff(ctx, m)
			return
		}
		d.logger.Warn().Err(err).Str("tenant", tenant).Str("command", label(name)).Msg("submitted command failed; retrying")
		_ = m.InProgress()
		_ = attempts.Wait(ctx) // the loop ends with ctx
	}
}

// submit executes a command or records its refusal. After an error it must be retried.
func (d *Dispatcher) submit(ctx context.Context, tenant, name, id string, m jetstream.Msg, again bool) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	if again {
		if was, err := d.wasRejected(ctx, tenant, id, m.Data()); was || err != nil {
			return err
		}
	}
	c, err := d.admit(tenant, name, withID(m.Data(), id), Meta{TraceParent: m.Headers().Get(events.HeaderTraceParent)})
	if err == nil {
		_, err = d.run(ctx, name, c)
	}
	result := "ok"
	if err != nil {
		refusal := events.AsError(err)
		// Refusals because of the thread's state, such as a full queue, are final here: it is
		// unknown when they would end, and other commands wait behind this one.
		if refusal.Code == events.Unavailable || refusal.Code == events.ProjectionBehind {
			return err
		}
		if err := d.reject(ctx, tenant, name, id, m.Data(), refusal); err != nil {
			return err
		}
		result = "rejected"
	}
	d.metrics.Done(label(name), result, time.Since(start).Seconds())
	return nil
}

// takeOff acknowledges an executed command, even if ctx has ended.
func (d *Dispatcher) takeOff(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := m.DoubleAck(ctx); err != nil {
		d.logger.Warn().Err(err).Msg("acknowledge submitted command: it was executed, and its redelivery will be recognised")
	}
}

// withID adds a command id, the same at every delivery, to a request without one.
func withID(body []byte, id string) []byte {
	var req map[string]events.JSON
	if json.Unmarshal(body, &req) != nil || req == nil {
		return body
	}
	if has := req["commandId"]; len(has) > 0 && jsontext.Value(has).Kind() != 'n' && string(has) != `""` {
		return body
	}
	req["commandId"] = events.JSON(strconv.Quote(id))
	out, err := json.Marshal(req)
	if err != nil {
		return body
	}
	return out
}

// wasRejected reports whether the refusal of a command was recorded before.
func (d *Dispatcher) wasRejected(ctx context.Context, tenant, id string, body []byte) (bool, error) {
	var req struct {
		ThreadID events.JSON `json:"threadId"`
	}
	_ = json.Unmarshal(body, &req)
	aggregates := []string{events.TenantAggregate}
	if id := text(req.ThreadID); events.ValidThreadID(id) {
		aggregates = append(aggregates, id)
	}
	for _, aggregate := range aggregates {
		reply, err := d.runJob(askJob(ctx, aggregate, &thread.Command{ID: rejectionOf(id), Tenant: tenant}))
		if reply != nil || err != nil {
			return reply != nil, err
		}
	}
	return false, nil
}

// rejectionOf returns the id of the command that records another's refusal.
func rejectionOf(id string) string { return id + ".rejected" }

// reject records a refusal: on the thread that the command named, or, if that does not exist,
// on the tenant.
func (d *Dispatcher) reject(ctx context.Context, tenant, name, id string, body []byte, e *events.Error) error {
	var req struct {
		CommandID events.JSON `json:"commandId"`
		ThreadID  events.JSON `json:"threadId"`
		Actor     events.JSON `json:"actor"`
	}
	_ = json.Unmarshal(body, &req)
	rejected := events.CommandRejected{
		Command: excerpt.Head(name, 128), CommandID: excerpt.Head(text(req.CommandID), 128), ThreadID: excerpt.Head(text(req.ThreadID), 512),
		Code: e.Code, Message: excerpt.Head(e.Message, 4096),
	}
	if e.Details != nil {
		rejected.Details, _ = json.Marshal(e.Details)
	}
	c := &thread.Command{
		ID: rejectionOf(id), Tenant: tenant, ThreadID: events.TenantAggregate, Time: events.TimeOf(d.cfg.Now()),
		Actor: excerpt.Head(text(req.Actor), 256), Parts: []thread.Part{{Name: "command.rejected", Data: rejected}},
	}
	if events.ValidThreadID(rejected.ThreadID) {
		onThread := *c
		onThread.ThreadID = rejected.ThreadID
		_, err := d.queue(ctx, &onThread)
		if err == nil || !events.IsNotFound(err) {
			return err
		}
	}
	_, err := d.queue(ctx, c)
	return err
}

// text returns a JSON string's value, or "".
func text(v events.JSON) string {
	var s string
	if jsontext.Value(v).Kind() == '"' {
		_ = json.Unmarshal(v, &s)
	}
	return s
}
