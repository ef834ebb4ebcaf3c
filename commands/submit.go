package commands

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// SubmitLease is the lease under which submitted commands are done, by one
// process at a time, so that those of a thread keep their order.
const SubmitLease = "submit"

const (
	submitConsumer = "skein-submit"
	submitLanes    = 32               // threads worked on at once
	submitWait     = 30 * time.Second // until an unanswered command comes again
)

// Submitted does the commands that were published on skein.submit, each once,
// until ctx ends. Those of one thread are done in their order. One that is
// refused is recorded as command.rejected; one that cannot be done now waits.
// Only one may run at a time: it ends the one before it, if there still is one.
func (d *Dispatcher) Submitted(ctx context.Context) error {
	if err := d.doSubmitted(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("reading submitted commands: %w", err)
	}
	return nil
}

func (d *Dispatcher) doSubmitted(ctx context.Context) error {
	name := d.log.Config().Names.Stream(eventlog.CommandStream)
	stream, err := d.log.JetStream().Stream(ctx, name)
	if err != nil {
		return err
	}
	// What a worker before this one had in hand would come late, and so after
	// what was submitted since. A consumer made anew begins at the first command
	// that is left.
	if err := stream.DeleteConsumer(ctx, submitConsumer); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	seen := info.State.LastSeq // up to here the worker before may have done them
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: submitConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: submitWait, MaxAckPending: 1024, MaxDeliver: -1,
	})
	if err != nil {
		return err
	}
	msgs, err := consumer.Messages(append(eventlog.Beat(), jetstream.PullMaxMessages(256))...)
	if err != nil {
		return err
	}
	defer msgs.Stop()
	ctx, cancel := context.WithCancel(ctx)
	lanes := make([]chan jetstream.Msg, submitLanes)
	var working sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan jetstream.Msg, 64)
		working.Go(func() {
			for m := range lanes[i] {
				d.submitted(ctx, m, seen)
			}
		})
	}
	defer working.Wait()
	defer func() {
		cancel()
		for _, lane := range lanes {
			close(lane)
		}
	}()
	for {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, jetstream.ErrMsgIteratorClosed), errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound):
			return err
		case err != nil:
			d.logger.Warn().Err(err).Msg("reading submitted commands was interrupted")
			wait(ctx, time.Second)
			continue
		}
		select {
		case lanes[d.lane(m)] <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lane gives the lane of a message: the same for all commands that name the
// same thread, or the same key, or are of the same tenant and no thread. Others
// that name none have no order.
func (d *Dispatcher) lane(m jetstream.Msg) int {
	type keyed struct {
		Key jsontext.Value `json:"key"`
	}
	var body struct {
		ThreadID jsontext.Value `json:"threadId"`
		Data     struct {
			keyed
			Commands []struct {
				Data keyed `json:"data"`
			} `json:"commands"`
		} `json:"data"`
	}
	_ = json.Unmarshal(m.Data(), &body) // what cannot be read is refused later
	id, key := events.ThreadRef(text(body.ThreadID))
	if id == "" && key == "" {
		key = text(body.Data.Key)
	}
	if id == "" && key == "" && len(body.Data.Commands) > 0 {
		key = text(body.Data.Commands[0].Data.Key)
	}
	if _, tenant, name, ok := d.log.Config().Names.ParseRequest(m.Subject()); ok {
		if row, known := events.LookupCommand(name); known && row.Tenant {
			id = tenant + "." + events.TenantAggregate
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id + key))
	if id+key == "" {
		_, _ = h.Write([]byte(m.Reply())) // which differs from message to message
	}
	return int(h.Sum32() % submitLanes)
}

// submitted does one command until it is done or refused. Up to the sequence
// seen it may have been done or refused before.
func (d *Dispatcher) submitted(ctx context.Context, m jetstream.Msg, seen uint64) {
	_, tenant, name, ok := d.log.Config().Names.ParseRequest(m.Subject())
	if !ok || !events.ValidTenant(tenant) {
		d.logger.Error().Msg("a submitted command without a valid tenant was dropped")
		_ = m.Term()
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		d.logger.Error().Err(err).Msg("a submitted command without metadata")
		return
	}
	id := "submit-" + strconv.FormatUint(meta.Sequence.Stream, 10)
	again := meta.Sequence.Stream <= seen || meta.NumDelivered > 1
	for attempt := 0; ctx.Err() == nil; attempt++ {
		err := d.submit(ctx, tenant, name, id, m, again)
		if err == nil {
			d.takeOff(ctx, m)
			return
		}
		d.logger.Warn().Err(err).Str("tenant", tenant).Str("command", label(name)).Msg("a submitted command could not be done now; it waits")
		_ = m.InProgress()
		wait(ctx, min(50*time.Millisecond<<min(attempt, 7), 5*time.Second))
	}
}

// submit does a command or records its refusal. After an error it is to be
// tried again.
func (d *Dispatcher) submit(ctx context.Context, tenant, name, id string, m jetstream.Msg, again bool) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	if again {
		if was, err := d.wasRejected(ctx, tenant, id, m.Data()); was || err != nil {
			return err
		}
	}
	c, err := d.admit(tenant, name, withID(m.Data(), id), Meta{TraceParent: m.Headers().Get("traceparent")})
	if err == nil {
		_, err = d.run(ctx, name, c)
	}
	result := "ok"
	if err != nil {
		refusal := events.AsError(err)
		if refusal.Code.Retry() {
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

// takeOff takes a command that is done off the list, also when the worker is
// being stopped.
func (d *Dispatcher) takeOff(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := m.DoubleAck(ctx); err != nil {
		d.logger.Warn().Err(err).Msg("a submitted command was done, but could not be taken off the list; it will be recognised")
	}
}

// withID gives a request a command id that is the same at every delivery, if
// it has none.
func withID(body []byte, id string) []byte {
	var req map[string]jsontext.Value
	if json.Unmarshal(body, &req) != nil || req == nil {
		return body
	}
	if has := req["commandId"]; len(has) > 0 && has.Kind() != 'n' && string(has) != `""` {
		return body
	}
	req["commandId"] = jsontext.Value(strconv.Quote(id))
	out, err := json.Marshal(req)
	if err != nil {
		return body
	}
	return out
}

// wasRejected reports whether the refusal of a command was recorded before.
func (d *Dispatcher) wasRejected(ctx context.Context, tenant, id string, body []byte) (bool, error) {
	var req struct {
		ThreadID jsontext.Value `json:"threadId"`
	}
	_ = json.Unmarshal(body, &req)
	aggregates := []string{events.TenantAggregate}
	if id := text(req.ThreadID); events.ValidThreadID(id) {
		aggregates = append(aggregates, id)
	}
	for _, aggregate := range aggregates {
		reply, err := d.queue(ctx, &thread.Command{ID: rejectionOf(id), Tenant: tenant, ThreadID: aggregate})
		if reply != nil || err != nil {
			return reply != nil, err
		}
	}
	return false, nil
}

// rejectionOf names the command that records the refusal of another.
func rejectionOf(id string) string { return id + ".rejected" }

// reject records a refusal: on the thread that the command named, or, if that
// is not there, on the tenant.
func (d *Dispatcher) reject(ctx context.Context, tenant, name, id string, body []byte, e *events.Error) error {
	var req struct {
		CommandID jsontext.Value `json:"commandId"`
		ThreadID  jsontext.Value `json:"threadId"`
		Actor     jsontext.Value `json:"actor"`
	}
	_ = json.Unmarshal(body, &req)
	rejected := events.CommandRejected{
		Command: clip(name, 128), CommandID: clip(text(req.CommandID), 128), ThreadID: clip(text(req.ThreadID), 512),
		Code: e.Code, Message: clip(e.Message, 4096),
	}
	if e.Details != nil {
		rejected.Details, _ = json.Marshal(e.Details)
	}
	c := &thread.Command{
		ID: rejectionOf(id), Tenant: tenant, ThreadID: events.TenantAggregate, Time: events.TimeOf(d.cfg.Now()),
		Actor: clip(text(req.Actor), 256), Parts: []thread.Part{{Name: "command.rejected", Data: rejected}},
	}
	if events.ValidThreadID(rejected.ThreadID) {
		onThread := *c
		onThread.ThreadID = rejected.ThreadID
		_, err := d.queue(ctx, &onThread)
		if err == nil || !errors.Is(err, &events.Error{Code: events.NotFound}) {
			return err
		}
	}
	_, err := d.queue(ctx, c)
	return err
}

// text gives a JSON string's text, or nothing.
func text(v jsontext.Value) string {
	var s string
	if v.Kind() == '"' {
		_ = json.Unmarshal(v, &s)
	}
	return s
}

// clip shortens a text, and makes it one: subjects may hold any bytes, events
// may not.
func clip(s string, most int) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 { // not amid a letter
		most--
	}
	return s[:most]
}

// wait waits, and reports whether ctx still stands.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
