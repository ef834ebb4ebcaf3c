package natsagents

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runview"
)

// keyPrefix begins the keys of threads.
const keyPrefix = "agents:"

// prompted takes a prompt.
func (s *Service) prompted(m *nats.Msg) {
	a, ok := addressee(m.Subject)
	if !ok || !s.answerable(m.Reply) {
		return
	}
	hold, over := s.gate.Enter(quota.Request{Names: []string{a.Tenant}, Takes: []quota.Kind{quota.InFlight, quota.Rate}}, time.Now())
	if over != nil {
		s.refuse(m.Reply, events.Errorf(events.QueueFull, "the tenant has too many prompts (%s); try again", over.Kind))
		s.respond(m.Reply, nil, []byte{})
		return
	}
	session := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	taken := s.begin(func() {
		defer hold.Leave()
		p := &prompt{s: s, agent: a, session: session, reply: m.Reply, open: map[string]context.CancelFunc{}}
		if err := p.answer(m.Data); err != nil {
			s.refuse(m.Reply, err)
		}
		s.respond(m.Reply, nil, []byte{})
	})
	if !taken {
		hold.Leave()
		s.refuse(m.Reply, errStopping)
		s.respond(m.Reply, nil, []byte{})
	}
}

// prompt is a prompt that is answered.
type prompt struct {
	s       *Service
	agent   Agent
	session string
	reply   string
	c       *client.Client
	thread  string
	fail    context.CancelCauseFunc // ends the stream

	sending sync.Mutex // held while a message is sent, so that acks do not follow the end
	last    time.Time  // when one was sent

	mu   sync.Mutex                    // guards what follows
	open map[string]context.CancelFunc // queries, by call
	work sync.WaitGroup
}

func (p *prompt) send(c chunk) {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.last = time.Now()
	p.s.respond(p.reply, nil, c)
}

// answer answers the prompt. The error is sent to the caller.
func (p *prompt) answer(body []byte) (err error) {
	if !events.ValidKey(keyPrefix + p.session) {
		return events.Errorf(events.InvalidRequest, "the last token of the subject names the session: at most 249 characters, none of them a control character")
	}
	e, err := decodeEnvelope(body)
	if err != nil {
		return err
	}
	item, err := e.item()
	if err != nil {
		return err
	}
	if p.c, err = p.s.o.Client(p.agent.Tenant); err != nil {
		return err
	}
	if err := p.s.check(p.agent); err != nil {
		return err
	}
	p.send(ack())
	ctx, cancel := context.WithTimeoutCause(p.s.ctx, streamTime, events.Errorf(events.Unavailable, "the answer took longer than %v; the run goes on", streamTime))
	defer cancel()
	ctx, p.fail = context.WithCancelCause(ctx)
	acks := make(chan struct{})
	go func() {
		defer close(acks)
		p.keepAlive(ctx)
	}()
	defer func() { // before the end of the stream
		cause := context.Cause(ctx)
		p.fail(nil)
		p.work.Wait()
		<-acks
		if err != nil && cause != nil {
			err = cause
		}
	}()
	reply, err := p.c.Send(ctx, "", events.ResolveThread{Key: keyPrefix + p.session, AgentID: p.agent.Name})
	if err != nil {
		return err
	}
	p.thread = reply.ThreadID
	if err := attachment.Store(ctx, p.c.Files(p.thread), attachment.Held{JSON: &item.Content}); err != nil {
		return err
	}
	id := events.ExecutionPrefix + uuid.Must(uuid.NewV7()).String()
	live := runstream.Ahead(ctx, p.c, p.thread)
	reply, err = p.c.Send(ctx, p.thread, events.ReactThread{Item: item, AgentID: p.agent.Name, Policy: events.Enqueue, ExecutionID: id})
	live = live.Begun(reply)
	if err != nil {
		return err
	}
	return p.follow(ctx, runstream.Options{Thread: p.thread, Execution: id, From: runstream.From(reply), Live: live})
}

// keepAlive sends acks while nothing else is sent.
func (p *prompt) keepAlive(ctx context.Context) {
	for tick := time.NewTicker(p.s.o.Interval / 2); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
		p.sending.Lock()
		if ctx.Err() == nil && time.Since(p.last) >= p.s.o.Interval/2 {
			p.last = time.Now()
			p.s.respond(p.reply, nil, ack())
		}
		p.sending.Unlock()
	}
}

// follow sends what a run says, until it has ended.
func (p *prompt) follow(ctx context.Context, o runstream.Options) error {
	o.Before = func(_ context.Context, e *events.Event) error {
		p.note(e)
		return nil
	}
	source, err := runstream.Subscribe(ctx, p.c, o)
	if err != nil {
		return err
	}
	defer source.Close()
	var end runview.Frame
	v := &view{View: runview.New(o.Execution)}
	v.AppendOnly()
	err = runstream.Play(ctx, source, v, func(frames []runview.Frame) error {
		for _, f := range frames {
			switch f := f.(type) {
			case runview.TextDelta:
				if f.Kind == runview.PlainText {
					p.send(chunk{"response", f.Delta})
				}
			case runview.Data:
				if file, ok := fileOf(f); ok {
					p.send(chunk{"response", response{Attachments: []attached{file}}})
				}
			case runview.Asked:
				p.ask(ctx, f)
			case runview.Finished, runview.Removed, runview.Deleted:
				end = f
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch f := end.(type) {
	case runview.Finished:
		if f.Aborted != nil {
			return events.Errorf(events.Unavailable, "the run was cancelled")
		}
		if f.Status == events.ExecutionFailed {
			return events.Errorf(runFailed, "%s", f.ErrorText)
		}
		return nil
	case runview.Deleted:
		return events.Missing("thread", p.thread)
	}
	return events.Errorf(events.Unavailable, "the prompt was removed from the queue of its thread")
}

// view is a view of a run that goes on while the caller is asked.
type view struct{ *runview.View }

// Waiting reports false: a query is answered in the stream.
func (view) Waiting() bool { return false }

// fileOf returns a file that a model has made, and whether there is one.
func fileOf(d runview.Data) (attached, bool) {
	part := runview.ReadPart(d.JSON)
	head, data, inline := strings.Cut(part.URL, ";base64,")
	raw, err := base64.StdEncoding.DecodeString(data)
	if d.Type != "file" || !inline || err != nil {
		return attached{}, false
	}
	name := part.Name
	if name == "" {
		_, kind, _ := strings.Cut(head, "/")
		name = "file." + kind
	}
	return attached{name, raw}, true
}

// note withdraws a query that an event answers.
func (p *prompt) note(e *events.Event) {
	d, ok := events.AnswerIn(e)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.open[d.CallID]; cancel != nil {
		cancel()
		delete(p.open, d.CallID)
	}
}

// ask asks the caller, and tells the run the answer.
func (p *prompt) ask(ctx context.Context, one runview.Asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[one.ID] != nil {
		return
	}
	asking, cancel := context.WithCancel(ctx)
	p.open[one.ID] = cancel
	p.work.Go(func() {
		defer cancel()
		if err := p.decide(ctx, asking, one.Request); err != nil && asking.Err() == nil {
			p.fail(err)
		}
	})
}

// repliesAtMost limits the replies to one approval or question. A program that replies at once, and
// never with an answer, would otherwise be asked thousands of times a second.
const repliesAtMost = 5

// decide asks until the caller has answered with something that decides, at most repliesAtMost times.
func (p *prompt) decide(ctx, asking context.Context, r events.ApprovalRequested) error {
	text := questionOf(r)
	for replies := 1; ; replies++ {
		said, err := p.askOnce(asking, text)
		if err != nil {
			return err
		}
		d, err := decisionOf(r, said)
		if err == nil {
			_, err = p.c.Send(ctx, p.thread, *d)
		}
		switch {
		case err == nil, events.HasCode(err, events.NotFound, events.IllegalTransition): // answered elsewhere
			return nil
		case !events.HasCode(err, events.InvalidRequest):
			return err
		case replies == repliesAtMost:
			return events.Invalid("", "%d replies to the query decided nothing, the last one because %s; the run waits for an approval, or an answer, in thread %s", replies, events.AsError(err).Message, p.thread)
		}
		text = events.AsError(err).Message + "\n" + questionOf(r)
	}
}

// askOnce asks once, and returns the text of the reply.
func (p *prompt) askOnce(ctx context.Context, text string) (string, error) {
	id := rand.Text()
	subject := events.AgentsReply(p.s.id, p.agent.Tenant, id)
	reply := make(chan []byte, 1)
	p.s.mu.Lock()
	p.s.asked[subject] = reply
	p.s.mu.Unlock()
	defer func() {
		p.s.mu.Lock()
		delete(p.s.asked, subject)
		p.s.mu.Unlock()
	}()
	p.send(chunk{"query", query{id, subject, text}})
	late := time.NewTimer(queryTime)
	defer late.Stop()
	select {
	case body := <-reply:
		e, err := decodeEnvelope(body)
		if err != nil { // an object that is the answer itself
			return string(body), nil
		}
		return e.Prompt, nil
	case <-late.C:
		return "", events.Errorf(events.Unavailable, "nobody answered the query for %v; the run waits for an approval, or an answer, in thread %s", queryTime, p.thread)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// replied passes the reply to a query on. A second reply is dropped.
func (s *Service) replied(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reply := s.asked[m.Subject]; reply != nil {
		delete(s.asked, m.Subject)
		reply <- m.Data
	}
}
