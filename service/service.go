package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/quota"
)

// Handler answers a request with a value that becomes JSON, with [Bytes], or with an
// error that becomes an *events.Error on the wire.
type Handler func(ctx context.Context, tenant, name string, body []byte, meta Meta) (any, error)

// Meta is the metadata of a request.
type Meta struct {
	TraceParent string // as the caller sent it
	Reply       string // the reply subject; empty if there is none
}

// Bytes is an answer that is sent as it is, and not as JSON.
type Bytes []byte

// Answered means that the handler has arranged for another reply on Meta.Reply.
type Answered struct{}

// Endpoint describes which requests a service answers.
type Endpoint struct {
	Name        string // of the NATS service: skein-commands
	Description string
	Kind        string // the second token of the subjects: cmd, query or file
	Pattern     string // the tokens after it; default all
	Version     string
	Build       map[string]string // more of what the program was built from, by its name in the service's metadata
	Requests    []string          // the names that it knows, for the service's information
	InFlight    int               // requests in flight at once; more are refused as unavailable
	Time        time.Duration     // that a request may take; 0: no bound
	Tenants     quota.Limits      // of each tenant; the zero value limits none
	Fair        quota.Fair        // of each tenant, while others are active; a request that does much counts as many
	Long        *quota.Pool       // places for requests that read much; nil: they need none
	// Answers and Refusals are the connections for answers, and for refusals of what is
	// over a limit; default that on which requests come. Each request and each refusal of
	// a flood takes the lock of its connection, which then is slow for others.
	Answers, Refusals *nats.Conn
	Metrics           Limited     // receives what a tenant's limits refused; default none
	Forwarding        *Forwarding // of requests to their owner; nil: each is answered where it arrives
}

// Limited receives requests that a tenant's limits refused: by service, and by limit
// (rate, inflight or reply). The tenant is left out, since there may be any number of
// them.
type Limited interface{ Limited(service, limit string) }

// Service is a NATS micro service on {prefix}.{kind}.>.
type Service struct {
	nc       *nats.Conn
	names    events.Names
	kind     string
	handler  Handler
	logger   zerolog.Logger
	service  micro.Service
	places   chan struct{} // one for each request in flight
	tenants  *quota.Gate
	fair     quota.Fair
	queue    *quota.Queue[request]
	long     *quota.Pool
	out      *nats.Conn
	forwards *forwarding             // nil: none
	over     chan overLimit          // to be refused
	refusals map[string]readyRefusal // by limit
	refused  func(limit string)
	most     time.Duration // that a request may take; 0: no bound
	ctx      context.Context
	cancel   context.CancelFunc

	mu       sync.Mutex // guards what follows
	running  int
	stopping bool
	finished chan struct{} // closed when it is stopping and no request is in flight
}

// Serve starts a service. Stop it before its connection is closed.
func Serve(nc *nats.Conn, names events.Names, e Endpoint, handler Handler, logger zerolog.Logger) (*Service, error) {
	if err := e.Tenants.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{
		nc: nc, names: names, kind: e.Kind, handler: handler, logger: logger, places: make(chan struct{}, e.InFlight),
		over: make(chan overLimit, refusalsAhead), ctx: ctx, cancel: cancel, finished: make(chan struct{}),
		tenants: quota.NewGate(e.Tenants), fair: e.Fair, long: e.Long, refused: func(string) {}, most: e.Time,
	}
	s.refusals = map[string]readyRefusal{
		quota.Rate.String():     encoded(events.Errorf(events.QueueFull, "the tenant sends more than %g requests a second; slow down", e.Tenants.Rate)),
		quota.InFlight.String(): encoded(events.Errorf(events.Unavailable, "the tenant has %d requests in flight, or its share of all; try again", e.Tenants.InFlight)),
	}
	s.out = cmp.Or(e.Answers, nc)
	go s.refuseOver(cmp.Or(e.Refusals, nc))
	s.queue = quota.NewQueue(e.Fair, func(r request) { go s.serveRequest(r) }, s.refuseWaiting)
	if e.Metrics != nil {
		s.refused = func(limit string) { e.Metrics.Limited(e.Kind, limit) }
	}
	metadata := map[string]string{"subjects": names.Prefix + "." + e.Kind + ".{tenant}.{noun}.{verb}"}
	maps.Copy(metadata, e.Build)
	for i, name := range e.Requests {
		metadata["request-"+strconv.Itoa(i+1)] = name
	}
	var service micro.Service
	var err error
	if e.Forwarding != nil {
		s.forwards = newForwarding(*e.Forwarding, names, s.acceptForwarded)
		err = s.forwards.start(ctx)
	}
	if err == nil {
		service, err = micro.AddService(nc, micro.Config{
			Name: e.Name, Version: e.Version, Description: e.Description, Metadata: metadata, QueueGroup: names.Prefix,
		})
	}
	if err == nil {
		err = service.AddEndpoint(e.Kind, micro.HandlerFunc(s.admit), micro.WithEndpointSubject(names.Prefix+"."+e.Kind+"."+cmp.Or(e.Pattern, ">")),
			micro.WithEndpointPendingLimits(pendingRequests, pendingBytes))
	}
	if err == nil {
		err = nc.Flush() // from here on, no request is lost
	}
	if err != nil {
		s.forwards.leave(ctx)
		if service != nil {
			_ = service.Stop() // the first error counts
		}
		s.forwards.drain(ctx)
		cancel()
		return nil, fmt.Errorf("starting the service %s: %w", e.Name, err)
	}
	s.service = service
	return s, nil
}

// The number of requests that may wait in this process to be admitted, which takes a
// microsecond each. More are dropped.
const (
	pendingRequests = 65536
	pendingBytes    = 64 << 20
)

// settle is how long Stop lets the client deliver the requests that it has received;
// the client does not say when it is done.
const settle = 25 * time.Millisecond

// Stop accepts no more requests, and answers those in flight. When ctx ends it abandons
// the rest. It may be called twice.
func (s *Service) Stop(ctx context.Context) error {
	s.forwards.leave(ctx)
	err := s.service.Stop()
	s.flush(ctx) // requests that the server sent before it knew of the end have arrived
	retry.Sleep(ctx, settle)
	s.forwards.drain(ctx)
	s.mu.Lock()
	if !s.stopping {
		s.stopping = true
		if s.running == 0 {
			close(s.finished)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.finished:
	case <-ctx.Done():
		select {
		case <-s.finished:
		default:
			err = fmt.Errorf("stopping a service with requests in flight: %w", ctx.Err())
		}
	}
	s.cancel()
	s.flush(ctx) // the replies are sent
	return err
}

// flush waits until the server has received everything that was sent. On a lost
// connection it returns at once.
func (s *Service) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = s.nc.FlushWithContext(ctx)
	_ = s.out.FlushWithContext(ctx)
}

// enter counts a request as in flight, and reports whether the service accepts it.
func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.running++
	return true
}

// leave is the counterpart of enter.
func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.stopping && s.running == 0 {
		close(s.finished)
	}
}

// request is a request on its way to the handler: a message, or one of this process.
type request struct {
	message incoming
	local   *localRequest // nil for a message
	tenant  string        // empty if the subject of a message names no valid one
	at      time.Time     // when it was admitted
	hold    *quota.Hold   // of its tenant's limits, once it is admitted
}

// serveRequest answers a request, and frees its places.
func (s *Service) serveRequest(r request) {
	defer func() {
		<-s.places
		r.hold.Leave()
		s.queue.Ended(r.tenant)
		s.leave()
	}()
	s.answer(r)
}

// answer has a request handled, and sends the outcome.
func (s *Service) answer(r request) {
	start := time.Now()
	tenant, name, out, err := s.handle(r)
	if _, answered := out.(Answered); answered && err == nil {
		return
	}
	if err == nil {
		err = s.send(r, name, out)
	}
	if err != nil {
		e := events.AsError(err)
		s.refuse(r, e)
		s.log(e, tenant, name, start)
		return
	}
	s.logger.Debug().Str("tenant", tenant).Str("request", name).Dur("took", time.Since(start)).Msg("done")
}

// handle calls the handler of a request within the request's time.
func (s *Service) handle(r request) (tenant, name string, out any, err error) {
	var wait time.Duration
	var handle func(context.Context) (any, error)
	if own, m := r.local, r.message; own != nil {
		tenant, name, wait, handle = own.Tenant, own.Name, own.wait, own.Handle
	} else {
		var ok bool
		if _, tenant, name, ok = s.names.ParseRequest(m.Subject()); !ok {
			return tenant, name, nil, events.Errorf(events.InvalidRequest, "the subject is %s.{cmd or query}.{tenant}.{noun}.{verb}", s.names.Prefix)
		}
		wait = waitOf(m.Headers())
		handle = func(ctx context.Context) (any, error) {
			return s.handler(ctx, tenant, name, m.Data(), Meta{TraceParent: m.Headers().Get(events.HeaderTraceParent), Reply: m.Reply()})
		}
	}
	ctx, cancel, limit := s.deadline(r.at, wait)
	defer cancel()
	if ctx.Err() != nil && s.ctx.Err() == nil { // its sender waited while it was queued, and is gone
		return tenant, name, nil, s.late(limit, nil)
	}
	work := quota.NewWork(tenant, s.long, s.queue.Spend)
	defer work.End()
	out, err = handle(work.In(ctx))
	if err != nil && limit > 0 && ctx.Err() != nil && s.ctx.Err() == nil {
		if events.AsError(err).Code == events.Unavailable { // else the handler says what it is
			err = s.late(limit, err)
		}
	}
	if err == nil {
		s.forwards.answered(true)
	} else if e := events.AsError(err); e.Code == events.Unavailable && e.Cause != nil && ctx.Err() == nil {
		s.forwards.answered(false)
	}
	return tenant, name, out, err
}

// send sends what a handler answered. The error is a refusal to be sent instead.
func (s *Service) send(r request, name string, out any) error {
	body, raw := out.(Bytes)
	if r.local != nil && !raw {
		r.local.done <- localAnswer{out: out}
		return nil
	}
	if !raw {
		var err error
		if body, err = Encode(out); err != nil {
			return err
		}
	}
	if most := s.nc.MaxPayload(); most > 0 && int64(len(body)) > most { // it would never arrive
		return events.TooLarge("the answer", int64(len(body)), most)
	}
	if r.local != nil {
		r.local.done <- localAnswer{out: body}
	} else if err := s.publish(r.message, nil, body); err != nil {
		s.logger.Warn().Err(err).Str("request", name).Msg("a reply could not be sent")
	}
	return nil
}

// Encode encodes an answer as a service sends it.
func Encode(answer any) (Bytes, error) {
	body, err := json.Marshal(answer, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encoding a reply: %w", err)
	}
	return body, nil
}

// refuse answers with an error.
func (s *Service) refuse(r request, e *events.Error) {
	if r.local != nil {
		r.local.refuse(e)
		return
	}
	ready := encoded(e)
	if err := s.publish(r.message, ready.headers, ready.body); err != nil {
		s.logger.Warn().Err(err).Msg("a refusal could not be sent")
	}
}

// readyRefusal is an error as it is sent.
type readyRefusal struct {
	refusal *events.Error
	headers micro.Headers
	body    []byte
}

func encoded(e *events.Error) readyRefusal {
	return readyRefusal{e, micro.Headers(e.Headers()), events.EncodeError(e)}
}

// publish sends an answer over NATS, if the request has a reply subject.
func (s *Service) publish(r incoming, headers micro.Headers, body []byte) error {
	if r.Reply() == "" {
		return nil
	}
	return s.out.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: nats.Header(headers), Data: body})
}

// log writes one line for a request that was refused. It contains nothing that the
// caller sent except valid names; an internal cause makes it a warning.
func (s *Service) log(e *events.Error, tenant, name string, start time.Time) {
	if !events.ValidTenant(tenant) {
		tenant = "?"
	}
	if !events.Pattern(events.PatternName).MatchString(name) {
		name = "?"
	}
	line := s.logger.Debug()
	if e.Code == events.Unavailable && e.Cause != nil {
		line = s.logger.Warn().AnErr("cause", e.Cause)
	}
	line.Str("tenant", tenant).Str("request", name).Str("code", string(e.Code)).Dur("took", time.Since(start)).Msg("refused")
}
