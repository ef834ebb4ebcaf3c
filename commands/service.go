package commands

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
)

// Handler answers one request: with a document, or an error that becomes an
// *events.Error on the wire.
type Handler func(ctx context.Context, tenant, name string, body []byte, meta Meta) (any, error)

// Bytes is an answer that is sent as it is, and not as JSON.
type Bytes []byte

// Answered says that the handler has had the request answered by somebody else,
// on Meta.Reply.
type Answered struct{}

// Handle is the dispatcher as a Handler.
func (d *Dispatcher) Handle(ctx context.Context, tenant, name string, body []byte, meta Meta) (any, error) {
	return d.Do(ctx, tenant, name, body, meta)
}

// Endpoint says what a service answers.
type Endpoint struct {
	Name        string // of the NATS service: skein-commands
	Description string
	Kind        string // the second token of the subjects: cmd, query or file
	Pattern     string // the tokens after it; default: all there are
	Version     string
	Requests    []string      // the names that it knows, for the service's information
	InFlight    int           // requests under way at once; more are refused as unavailable
	Time        time.Duration // that a request may take; 0: any
	Tenants     Limits        // of each tenant; the zero value limits none
	Fair        Fair          // of each tenant, while others are active
	Activity    *Activity     // of all services of the process; default this one's own
	Floods      *Floods       // told of what is over a limit; nil: nobody is
	// Answers and Refusals are connections on which answers go out, and refusals of what
	// is over a limit; default that on which requests come. Each of a flood's requests
	// and refusals takes the lock of its connection, which then is slow for others.
	Answers, Refusals *nats.Conn
	Metrics           Limited // told of what a tenant's limits refused; nil: nobody is
}

// Limited is told of requests that a tenant's limits refused: by service, and by
// which limit (rate or inflight). There is no tenant in it, since there may be
// any number of them.
type Limited interface{ Limited(service, limit string) }

// Service is a NATS micro service on {prefix}.{kind}.>, in a queue group, so
// that several processes share the work and `nats micro` lists, describes and
// counts it.
type Service struct {
	nc       *nats.Conn
	names    events.Names
	handler  Handler
	logger   zerolog.Logger
	service  micro.Service
	places   chan struct{}
	tenants  *tenants
	lanes    *lanes
	out      *nats.Conn
	floods   *Floods
	over     chan overLimit          // to be refused
	refusals map[string]readyRefusal // by limit
	refused  func(limit string)
	most     time.Duration // that a request may take; 0: any
	waiting  chan work     // to a goroutine that has nothing to do
	ctx      context.Context
	cancel   context.CancelFunc

	mu       sync.Mutex // guards what follows
	running  int
	stopping bool
	finished chan struct{} // closed when it is stopping and nothing runs any more
}

// Serve starts a service. Stop it before its connection is closed.
func Serve(nc *nats.Conn, names events.Names, e Endpoint, handler Handler, logger zerolog.Logger) (*Service, error) {
	if err := e.Tenants.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{
		nc: nc, names: names, handler: handler, logger: logger, places: make(chan struct{}, e.InFlight),
		waiting: make(chan work), over: make(chan overLimit, refusalsAhead), ctx: ctx, cancel: cancel, finished: make(chan struct{}), tenants: newTenants(e.Tenants), refused: func(string) {}, most: e.Time,
	}
	s.refusals = map[string]readyRefusal{
		limitRate:     encoded(events.Errorf(events.QueueFull, "the tenant sends more than %g requests a second; slow down", e.Tenants.Rate)),
		limitInFlight: encoded(events.Errorf(events.Unavailable, "the tenant has %d requests under way, or its share of all; try again", e.Tenants.InFlight)),
	}
	s.out, s.floods = cmp.Or(e.Answers, nc), e.Floods
	go s.refuseOver(cmp.Or(e.Refusals, nc))
	s.lanes = newLanes(e.Fair, e.Activity, e.Floods, s.hand, s.drop)
	if e.Metrics != nil {
		s.refused = func(limit string) { e.Metrics.Limited(e.Kind, limit) }
	}
	metadata := map[string]string{"subjects": names.Prefix + "." + e.Kind + ".{tenant}.{noun}.{verb}"}
	for i, name := range e.Requests {
		metadata["request-"+strconv.Itoa(i+1)] = name
	}
	service, err := micro.AddService(nc, micro.Config{
		Name: e.Name, Version: e.Version, Description: e.Description, Metadata: metadata, QueueGroup: names.Prefix,
	})
	if err == nil {
		err = service.AddEndpoint(e.Kind, micro.HandlerFunc(s.take), micro.WithEndpointSubject(names.Prefix+"."+e.Kind+"."+cmp.Or(e.Pattern, ">")),
			micro.WithEndpointPendingLimits(pendingRequests, pendingBytes))
	}
	if err == nil {
		err = nc.Flush() // from here on, no request is lost
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the service %s could not be started: %w", e.Name, err)
	}
	s.service = service
	return s, nil
}

// How many requests may wait in this process to be looked at, which takes a
// microsecond each. More are dropped.
const (
	pendingRequests = 65536
	pendingBytes    = 64 << 20
)

// settle is how long Stop gives the client to hand over the requests that had
// come; it does not say when it has.
const settle = 25 * time.Millisecond

// Stop takes no more requests, finishes those under way, and answers them. When
// ctx ends it gives up what is left. It may be called twice.
func (s *Service) Stop(ctx context.Context) error {
	err := s.service.Stop()
	s.flush(ctx) // what the server sent before it heard of the end has come
	wait(ctx, settle)
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
		err = fmt.Errorf("requests were still under way: %w", ctx.Err())
	}
	s.cancel()
	s.flush(ctx) // the answers have gone out
	return err
}

// flush waits for the server's answer to all that was sent. A connection that is
// lost has nothing to wait for.
func (s *Service) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = s.nc.FlushWithContext(ctx)
	_ = s.out.FlushWithContext(ctx)
}

// begin reports whether a request may still begin.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.running++
	return true
}

func (s *Service) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.stopping && s.running == 0 {
		close(s.finished)
	}
}

// take hands a request to a goroutine. It returns at once: an endpoint's requests
// come one after another. What is over a limit is refused before it is looked at,
// and so costs little.
func (s *Service) take(r micro.Request) {
	if !s.names.Answerable(r.Reply()) {
		s.refused(limitReply)
		return // and nothing is answered: that is what would do the harm
	}
	tenant := ""
	if _, t, _, ok := s.names.ParseRequest(r.Subject()); ok && events.ValidTenant(t) {
		tenant = t
	}
	now := time.Now()
	leave, limit := s.tenants.enter(tenant, now, cap(s.places)-len(s.places))
	if limit != "" {
		s.exceed(r, tenant, limit)
		return
	}
	select {
	case s.places <- struct{}{}:
	default:
		leave()
		s.refuse(r, events.Errorf(events.Unavailable, "too many requests are under way; try again"))
		return
	}
	if !s.begin() {
		<-s.places
		leave()
		s.refuse(r, events.Errorf(events.Unavailable, "the service is stopping; try again"))
		return
	}
	s.lanes.add(work{r, tenant, leave}, now)
}

// exceed refuses what is over a limit of its tenant.
func (s *Service) exceed(r micro.Request, tenant, limit string) {
	s.refused(limit)
	s.floods.over(tenant, time.Now())
	select {
	case s.over <- overLimit{r.Reply(), limit}:
	default: // more than can be answered
	}
}

// drop refuses a request that was let in and has not begun.
func (s *Service) drop(w work) {
	<-s.places
	w.leave()
	s.exceed(w.Request, w.tenant, limitInFlight)
	s.end()
}

// hand gives a request to a goroutine.
func (s *Service) hand(w work) {
	select {
	case s.waiting <- w:
	default:
		go s.work(w)
	}
}

// work is a request, and what gives its tenant's place back.
type work struct {
	micro.Request
	tenant string
	leave  func()
}

// idle is how long a goroutine waits for the next request. A new one would have
// to grow its stack again: the door and the fold of a command go deep.
const idle = 5 * time.Second

// work answers a request, and those that come while it waits.
func (s *Service) work(w work) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		s.done(w)
		timer.Reset(idle)
		select {
		case w = <-s.waiting:
		case <-timer.C:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// done answers a request, and gives its places back.
func (s *Service) done(w work) {
	defer func() {
		<-s.places
		w.leave()
		s.lanes.ended(w.tenant)
		s.end()
	}()
	s.answer(w.Request)
}

func (s *Service) answer(r micro.Request) {
	start := time.Now()
	_, tenant, name, ok := s.names.ParseRequest(r.Subject())
	var out any
	var err error
	if !ok {
		err = events.Errorf(events.InvalidRequest, "the subject is %s.{cmd or query}.{tenant}.{noun}.{verb}", s.names.Prefix)
	} else {
		ctx, cancel, limit := s.limited(r.Headers().Get(events.HeaderWait))
		defer cancel()
		out, err = s.handler(ctx, tenant, name, r.Data(), Meta{TraceParent: r.Headers().Get("traceparent"), Reply: r.Reply()})
		if err != nil && limit > 0 && ctx.Err() != nil && s.ctx.Err() == nil {
			err = s.late(limit, err)
		}
	}
	if err != nil {
		e := events.AsError(err)
		s.refuse(r, e)
		s.log(e, tenant, name, start)
		return
	}
	if _, done := out.(Answered); done {
		return
	}
	body, raw := out.(Bytes)
	if !raw {
		if body, err = json.Marshal(out, json.Deterministic(true)); err != nil {
			s.refuse(r, events.AsError(fmt.Errorf("encoding a reply: %w", err)))
			return
		}
	}
	if most := s.nc.MaxPayload(); most > 0 && int64(len(body)) > most { // it would never come
		e := events.TooLarge("the answer", int64(len(body)), most)
		s.refuse(r, e)
		s.log(e, tenant, name, start)
		return
	}
	if err := s.respond(r, nil, body); err != nil {
		s.logger.Warn().Err(err).Str("request", name).Msg("a reply could not be sent")
	}
	s.logger.Debug().Str("tenant", tenant).Str("request", name).Dur("took", time.Since(start)).Msg("done")
}

// refuse answers with an error. It does not use the request's own Error, which
// may only be called before the handler returns.
func (s *Service) refuse(r micro.Request, e *events.Error) { s.send(r, encoded(e)) }

// readyRefusal is an error as it is sent.
type readyRefusal struct {
	headers micro.Headers
	body    []byte
}

func encoded(e *events.Error) readyRefusal {
	return readyRefusal{micro.Headers{events.HeaderErrorCode: {strconv.Itoa(e.Code.Status())}, events.HeaderError: {string(e.Code)}}, events.EncodeError(e)}
}

func (s *Service) send(r micro.Request, e readyRefusal) {
	if err := s.respond(r, nats.Header(e.headers), e.body); err != nil {
		s.logger.Warn().Err(err).Msg("a refusal could not be sent")
	}
}

// respond sends an answer, if one is wanted.
func (s *Service) respond(r micro.Request, headers nats.Header, body []byte) error {
	if r.Reply() == "" {
		return nil
	}
	return s.out.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: headers, Data: body})
}

// overLimit is a request that a limit of its tenant refused.
type overLimit struct{ reply, limit string }

// refusalsAhead is how many refusals may wait to be sent. Of a flood that brings
// more some are not answered.
const refusalsAhead = 4096

// refuseOver answers what is over a limit, until the service has ended. The answers
// are ready-made: a flood may bring very many.
func (s *Service) refuseOver(out *nats.Conn) {
	for {
		select {
		case o := <-s.over:
			if o.reply == "" {
				continue
			}
			e := s.refusals[o.limit]
			if err := out.PublishMsg(&nats.Msg{Subject: o.reply, Header: nats.Header(e.headers), Data: e.body}); err != nil {
				s.logger.Debug().Err(err).Msg("a refusal could not be sent")
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// log writes one line for a request that was refused. What the caller sent is
// not in it, but for what is a valid name; a cause from inside is a warning.
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
