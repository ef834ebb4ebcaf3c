package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// SubmitLease is the lease under which one process at a time executes submitted commands, so that
// the commands of a thread keep their order.
const SubmitLease = "submit"

const (
	submitLanes   = 16               // threads of a tenant processed at once
	submitInHand  = 256              // commands of a tenant that are read ahead
	submitWait    = 30 * time.Second // until an unacknowledged command is redelivered
	submitIdle    = time.Minute      // until a tenant's reader without commands ends
	submitForget  = time.Hour        // until the server forgets a reader that has ended
	submitRecheck = 30 * time.Second // between two scans for tenants with commands that no hint announced
)

// Submitted executes the commands that were published on skein.submit, each once, until ctx ends.
// Those of one thread are executed in order. A refused command is recorded as command.rejected. A
// command that cannot be executed now is retried, and blocks only its own tenant, because each
// tenant has its own reader and lanes. Only one Submitted may run at a time: it ends the previous
// one.
func (d *Dispatcher) Submitted(ctx context.Context) error {
	if err := d.doSubmitted(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read submitted commands: %w", err)
	}
	return nil
}

// submitting is one call of Submitted.
type submitting struct {
	d      *Dispatcher
	stream jetstream.Stream
	run    string // names this run's consumers
	seen   uint64 // the previous run may have executed commands up to this sequence
	walked uint64 // all commands without a valid tenant up to this sequence were dropped
	ctx    context.Context
	fail   context.CancelCauseFunc

	mu      sync.Mutex // guards the fields below
	readers map[string]bool
	ended   bool
	working sync.WaitGroup
}

func (d *Dispatcher) doSubmitted(ctx context.Context) error {
	stream, err := d.log.JetStream().Stream(ctx, d.log.Config().Names.Stream(assets.CommandStream))
	if err != nil {
		return err
	}
	// With the previous run's consumer, its unacknowledged commands would be redelivered after
	// later ones. A new consumer starts at the first command that is left.
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		if err := stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	if err := names.Err(); err != nil {
		return err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	s := &submitting{d: d, stream: stream, run: rand.Text(), seen: info.State.LastSeq, ctx: ctx, fail: fail, readers: map[string]bool{}}
	defer s.stop()
	return s.watch()
}

// stop stops the readers, and waits for them.
func (s *submitting) stop() {
	s.fail(nil)
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.working.Wait()
}

// watch starts a reader for every tenant that has commands, until the run ends. It learns of
// them from the messages as they are published, and scans for those that it missed.
func (s *submitting) watch() error {
	n := s.d.log.Config().Names
	published, stray := 0, make(chan struct{}, 1)
	hints, err := s.d.log.Conn().Subscribe(n.Submit("*", "*.*"), func(m *nats.Msg) {
		_, tenant, _, ok := n.ParseRequest(m.Subject)
		if !ok || !events.ValidTenant(tenant) {
			select {
			case stray <- struct{}{}:
			default: // the scan finds it
			}
			return
		}
		s.wake(tenant)
		if published++; published%3 == 0 { // only every third command counts towards a flood, because bursts are normal here
			s.d.cfg.Fair.Floods.Note(tenant, time.Now())
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = hints.Unsubscribe() }() // fails only if the connection is closed
	connects, done := s.d.log.Streams().Connects()
	defer done()
	recheck := time.NewTicker(submitRecheck)
	defer recheck.Stop()
	for {
		if err := s.find(); err != nil {
			return err
		}
		select {
		case <-connects:
		case <-recheck.C:
		case <-stray:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// find wakes the readers of all tenants that have commands, and drops commands without a valid
// tenant.
func (s *submitting) find() error {
	n := s.d.log.Config().Names
	info, err := s.stream.Info(s.ctx, jetstream.WithSubjectFilter(n.Submit("*", "*.*")))
	if err != nil {
		return err
	}
	stray := false
	for subject := range info.State.Subjects {
		if _, tenant, _, ok := n.ParseRequest(subject); ok && events.ValidTenant(tenant) {
			s.wake(tenant)
		} else {
			stray = true
		}
	}
	if !stray {
		return nil
	}
	dropped := 0
	defer func() {
		if dropped > 0 {
			s.d.logger.Error().Int("commands", dropped).Msg("dropped submitted commands without a valid tenant")
		}
	}()
	for {
		m, err := s.stream.GetMsg(s.ctx, s.walked+1, jetstream.WithGetMsgSubject(n.Submit("*", "*.*")))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil
		case err != nil:
			return err
		}
		if _, tenant, _, ok := n.ParseRequest(m.Subject); !ok || !events.ValidTenant(tenant) {
			if err := s.stream.DeleteMsg(s.ctx, m.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				return err
			}
			dropped++
		}
		s.walked = m.Sequence
	}
}

// wake starts a tenant's reader, if it has none.
func (s *submitting) wake(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.readers[tenant] {
		return
	}
	s.readers[tenant] = true
	s.working.Go(func() {
		if err := s.read(tenant); err != nil && s.ctx.Err() == nil {
			s.fail(err) // end this run: another process may have taken over
		}
		s.mu.Lock()
		delete(s.readers, tenant)
		s.mu.Unlock()
		if s.ctx.Err() == nil && s.left(tenant) {
			s.wake(tenant) // a command arrived as the reader was about to end
		}
	})
}

// left reports whether a tenant has commands that no reader holds.
func (s *submitting) left(tenant string) bool {
	consumer, err := s.stream.Consumer(s.ctx, s.consumer(tenant))
	return err == nil && consumer.CachedInfo().NumPending+uint64(consumer.CachedInfo().NumAckPending) > 0
}

func (s *submitting) consumer(tenant string) string { return "skein-submit-" + s.run + "-" + tenant }

// read executes a tenant's commands until none has arrived for a while.
func (s *submitting) read(tenant string) error {
	consumer, err := s.stream.CreateOrUpdateConsumer(s.ctx, jetstream.ConsumerConfig{
		Durable: s.consumer(tenant), FilterSubject: s.d.log.Config().Names.Submit(tenant, "*.*"), InactiveThreshold: submitForget,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: submitWait, MaxAckPending: submitInHand, MaxDeliver: -1,
	})
	if err != nil {
		return err
	}
	msgs, err := consumer.Messages(append(streams.Beat(), jetstream.PullMaxMessages(submitInHand/4))...)
	if err != nil {
		return err
	}
	defer msgs.Stop()
	turns := newShareLimiter(func() int { return s.d.submittedShare(tenant) })
	lanes := make([]chan jetstream.Msg, submitLanes)
	var working sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan jetstream.Msg, submitInHand/submitLanes)
		working.Go(func() {
			for m := range lanes[i] {
				s.d.submitted(s.ctx, m, s.seen, turns)
			}
		})
	}
	defer working.Wait()
	defer func() {
		for _, lane := range lanes {
			close(lane)
		}
	}()
	for {
		m, err := nextWithin(s.ctx, msgs, submitIdle)
		switch {
		case s.ctx.Err() != nil, m == nil && err == nil:
			return nil
		case errors.Is(err, jetstream.ErrMsgIteratorClosed), errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound):
			return err
		case err != nil:
			s.d.logger.Warn().Err(err).Str("tenant", tenant).Msg("read submitted commands: interrupted; retrying")
			retry.Sleep(s.ctx, time.Second)
			continue
		}
		select {
		case lanes[s.d.lane(m)] <- m:
		case <-s.ctx.Done():
			return nil
		}
	}
}

// nextWithin returns the next message, or nil if none arrives in time.
func nextWithin(ctx context.Context, msgs jetstream.MessagesContext, most time.Duration) (jetstream.Msg, error) {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	m, err := msgs.Next(jetstream.NextContext(waiting))
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return m, err
}

// lane returns the lane of a message. Commands of a tenant that name the same thread, the same
// key, or the tenant's aggregate share a lane. Commands that name none of these are unordered.
func (d *Dispatcher) lane(m jetstream.Msg) int {
	type keyed struct {
		Key events.JSON `json:"key"`
	}
	var body struct {
		ThreadID events.JSON `json:"threadId"`
		Data     struct {
			keyed
			Commands []struct {
				Data keyed `json:"data"`
			} `json:"commands"`
		} `json:"data"`
	}
	_ = json.Unmarshal(m.Data(), &body) // a malformed command is refused later
	id, key := events.ThreadRef(text(body.ThreadID))
	if id == "" && key == "" {
		key = text(body.Data.Key)
	}
	if id == "" && key == "" && len(body.Data.Commands) > 0 {
		key = text(body.Data.Commands[0].Data.Key)
	}
	if _, _, name, ok := d.log.Config().Names.ParseRequest(m.Subject()); ok {
		if row, known := events.LookupCommand(name); known && row.Tenant {
			id = events.TenantAggregate
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id + key))
	if id+key == "" {
		_, _ = h.Write([]byte(m.Reply())) // the reply subject differs for each message
	}
	return int(h.Sum32() % submitLanes)
}
