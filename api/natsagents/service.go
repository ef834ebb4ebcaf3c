package natsagents

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

const (
	serviceName     = "agents"
	queueGroup      = "agents"
	protocolVersion = "0.3"

	lookTime   = 10 * time.Second // that finding all agents may take
	queryTime  = 10 * time.Minute // that a query waits for its reply
	streamTime = time.Hour        // that a prompt is answered at most
)

// Agent is an agent of a tenant.
type Agent struct{ Tenant, Name, Description string }

// Options configures a Service. Conn, Client and Agents are required; the zero value of any other field
// means its default.
type Options struct {
	Conn    *nats.Conn                                  // of Skein
	Client  func(tenant string) (*client.Client, error) // that acts for a tenant
	Agents  func(context.Context) ([]Agent, error)      // that are defined now
	Names   events.Names                                // of Skein's own subjects; default prefix skein
	Version string                                      // of the program; default 0.0.0

	// Interval is the time between two heartbeats, and between two acks of a stream without news:
	// callers give up after a minute without one. Default 20 s.
	Interval time.Duration

	Limits quota.Limits   // of each tenant; default none
	Logger zerolog.Logger // default none
}

// Service serves agents. It is safe for concurrent use.
type Service struct {
	o       Options
	id      string // of the process
	started time.Time
	gate    *quota.Gate
	ctx     context.Context
	cancel  context.CancelCauseFunc
	subs    []*nats.Subscription
	work    sync.WaitGroup

	mu       sync.Mutex // guards what follows
	stopping bool
	asked    map[string]chan<- []byte // queries that wait for a reply, by subject
}

var errStopping = events.Errorf(events.Unavailable, "the server is stopping; the run goes on, ask again to see it")

// Serve starts a service. Stop it before its connection is closed.
func Serve(o Options) (*Service, error) {
	if o.Names.Prefix == "" {
		o.Names = events.DefaultNames()
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.Interval == 0 {
		o.Interval = 20 * time.Second
	}
	s := &Service{o: o, id: rand.Text(), started: time.Now().UTC(), gate: quota.NewGate(o.Limits), asked: map[string]chan<- []byte{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	err := errors.Join(
		s.subscribe(events.AgentsPrompt("*", "*", "*"), queueGroup, s.prompted),
		s.subscribe(events.AgentsStatus("*", "*", "*"), queueGroup, s.askedStatus),
		s.subscribe(events.AgentsReply(s.id, "*", "*"), "", s.replied),
	)
	for _, verb := range events.AgentsVerbs() {
		for subject, all := range map[string]bool{
			"$SRV." + verb: true, events.AgentsFindLocal(verb): true, events.AgentsFindLocal(verb) + ".*": true,
			events.AgentsFind(verb, "*"): false, events.AgentsFind(verb, "*") + ".*": false,
		} {
			err = errors.Join(err, s.subscribe(subject, "", func(m *nats.Msg) { s.askedFor(m, verb, all) }))
		}
	}
	if err == nil {
		err = o.Conn.Flush()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop(context.Background()))
	}
	s.work.Go(s.beat)
	return s, nil
}

func (s *Service) subscribe(subject, queue string, handle nats.MsgHandler) error {
	sub, err := s.o.Conn.QueueSubscribe(subject, queue, handle) // an empty queue is none
	if err == nil {
		s.subs = append(s.subs, sub)
	}
	return err
}

// Stop takes no more prompts, and ends the streams of those that are answered; their runs go on.
func (s *Service) Stop(ctx context.Context) error {
	var errs []error
	for _, sub := range s.subs {
		errs = append(errs, sub.Unsubscribe())
	}
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.cancel(errStopping)
	ended := make(chan struct{})
	go func() {
		s.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}

// begin counts work, unless the service is stopping.
func (s *Service) begin(do func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.work.Go(do)
	}
	return !s.stopping
}

// instance returns the id of an agent in this process.
func (s *Service) instance(a Agent) string {
	sum := sha256.Sum256([]byte(s.id + "." + a.Tenant + "." + a.Name))
	return hex.EncodeToString(sum[:11])
}

func (s *Service) identity(a Agent) micro.ServiceIdentity {
	return micro.ServiceIdentity{Name: serviceName, ID: s.instance(a), Version: s.o.Version, Metadata: map[string]string{
		"agent": a.Name, "owner": a.Tenant, "session": events.AgentsSession, "protocol_version": protocolVersion,
	}}
}

// askedFor answers a request of discovery, with a message for each agent.
func (s *Service) askedFor(m *nats.Msg, verb string, all bool) {
	if !s.answerable(m.Reply) {
		return
	}
	tokens, tenant, id := strings.Split(m.Subject, "."), "", ""
	if all && len(tokens) == 4 {
		id = tokens[3]
	}
	if !all {
		if tenant = tokens[3]; len(tokens) == 5 {
			id = tokens[4]
		}
	}
	s.begin(func() {
		list, err := s.agents()
		if err != nil {
			return
		}
		for _, a := range list {
			if tenant != "" && a.Tenant != tenant || id != "" && s.instance(a) != id {
				continue
			}
			s.respond(m.Reply, nil, s.described(a, verb))
		}
	})
}

// described returns what discovery says of an agent.
func (s *Service) described(a Agent, verb string) any {
	prompt := micro.EndpointInfo{Name: "prompt", Subject: events.AgentsPrompt(a.Name, a.Tenant, events.AgentsSession), QueueGroup: queueGroup,
		Metadata: map[string]string{"max_payload": sizeOf(s.o.Conn.MaxPayload()), "attachments_ok": "true"}}
	status := micro.EndpointInfo{Name: "status", Subject: events.AgentsStatus(a.Name, a.Tenant, events.AgentsSession), QueueGroup: queueGroup, Metadata: map[string]string{}}
	switch verb {
	case "PING":
		return micro.Ping{ServiceIdentity: s.identity(a), Type: micro.PingResponseType}
	case "STATS":
		out := micro.Stats{ServiceIdentity: s.identity(a), Type: micro.StatsResponseType, Started: s.started}
		for _, e := range []micro.EndpointInfo{prompt, status} {
			out.Endpoints = append(out.Endpoints, &micro.EndpointStats{Name: e.Name, Subject: e.Subject, QueueGroup: e.QueueGroup})
		}
		return out
	}
	return micro.Info{ServiceIdentity: s.identity(a), Type: micro.InfoResponseType, Description: a.Description, Endpoints: []micro.EndpointInfo{prompt, status}}
}

func (s *Service) agents() ([]Agent, error) {
	ctx, cancel := context.WithTimeout(s.ctx, lookTime)
	defer cancel()
	list, err := s.o.Agents(ctx)
	if err != nil && s.ctx.Err() == nil {
		s.o.Logger.Warn().Err(err).Msg("the agents cannot be listed, so that no NATS client finds them now")
	}
	return list, err
}

// heartbeat says that an agent is alive.
type heartbeat struct {
	Agent    string `json:"agent"`
	Owner    string `json:"owner"`
	Session  string `json:"session"`
	Instance string `json:"instance_id"`
	Time     string `json:"ts"`
	Interval int    `json:"interval_s"`
}

func (s *Service) heartbeat(a Agent) heartbeat {
	return heartbeat{a.Name, a.Tenant, events.AgentsSession, s.instance(a), time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), max(int(s.o.Interval/time.Second), 1)}
}

// beat publishes heartbeats until the service stops.
func (s *Service) beat() {
	for tick := time.NewTicker(s.o.Interval); ; {
		list, err := s.agents()
		for i := 0; err == nil && i < len(list); i++ {
			s.respond(events.AgentsHeartbeat(list[i].Name, list[i].Tenant, events.AgentsSession), nil, s.heartbeat(list[i]))
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			tick.Stop()
			return
		}
	}
}

// askedStatus answers with a heartbeat of the agent.
func (s *Service) askedStatus(m *nats.Msg) {
	a, ok := addressee(m.Subject)
	if !ok || !s.answerable(m.Reply) {
		return
	}
	s.begin(func() {
		if err := s.check(a); err != nil {
			s.refuse(m.Reply, err)
			return
		}
		s.respond(m.Reply, nil, s.heartbeat(a))
	})
}

// check returns a not_found if there is no such agent.
func (s *Service) check(a Agent) error {
	c, err := s.o.Client(a.Tenant)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookTime)
	defer cancel()
	now, err := c.UpToDate(ctx)
	if err != nil {
		return err
	}
	_, err = client.Read(ctx, now, events.GetAgent{Name: a.Name})
	return err
}

// addressee returns the agent that a subject names, and whether it names one.
func addressee(subject string) (Agent, bool) {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 5 {
		return Agent{}, false
	}
	return Agent{Name: tokens[2], Tenant: tokens[3]}, events.ValidTenant(tokens[3])
}
