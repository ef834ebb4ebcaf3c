package webhooks_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/webhooks"
)

// pusher is a world with a thread, whose run's updates are the types of events and their places.
type pusher struct {
	*world
	pushes *webhooks.Pushes
	thread string
	run    string
	told   chan string
	refuse chan bool // holds something while the endpoint refuses
	to     events.SetPush
}

func startPusher(t *testing.T) *pusher {
	t.Helper()
	policy, err := egress.Parse(egress.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	w := start(t)
	p := &pusher{world: w, pushes: webhooks.NewPushes(w.log, policy), told: make(chan string, 100), refuse: make(chan bool, 1)}
	p.thread = p.world.thread(p.c, events.CreateThread{AgentID: "triage"})
	receiver := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if len(p.refuse) > 0 {
			p.told <- "refused"
			out.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p.told <- r.Header.Get("Authorization") + " " + r.Header.Get("Webhook-Id")
	}))
	t.Cleanup(receiver.Close)
	reply, err := p.c.Send(p.ctx, p.thread, events.ReactThread{Item: &events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"}]`)}})
	if err != nil {
		t.Fatal(err)
	}
	p.run = reply.Result.ExecutionID
	p.to = events.SetPush{ID: uuid.NewString(), ExecutionID: p.run, Form: events.PushA2A, URL: receiver.URL, Scheme: "Bearer", Credentials: "c-1", FromSeq: reply.Seq}
	return p
}

// open opens the log on a connection of its own.
func (p *pusher) open() *eventlog.Log {
	p.t.Helper()
	log, err := eventlog.Open(natstest.Dial(p.t, p.url), eventlog.Config{}, zerolog.Nop(), eventlog.NoMetrics{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(log.Close)
	return log
}

// set stores the push.
func (p *pusher) set() {
	p.t.Helper()
	if _, err := p.pushes.Set(p.ctx, "acme", p.thread, p.to); err != nil {
		p.t.Fatal(err)
	}
}

// config is that of a hub that tells of every event of the run, and last of its end.
func (p *pusher) config() webhooks.Config {
	way := remote.NewClient(&http.Transport{})
	p.t.Cleanup(way.CloseIdleConnections)
	return webhooks.Config{
		Push: func(to *events.SetPush) (remote.Endpoint, error) {
			return remote.Endpoint{URL: to.URL, Unsigned: true, Client: way}, nil
		},
		Update: func(_ context.Context, to *events.SetPush, e *events.Event, _ uint64) (*webhooks.Update, error) {
			if e.Correlation != to.ExecutionID {
				return &webhooks.Update{}, nil
			}
			return &webhooks.Update{Type: "text/plain", Body: []byte(e.Type), Last: e.Type == events.ExecutionStatusChangedType}, nil
		},
	}
}

func (p *pusher) next() string {
	p.t.Helper()
	select {
	case one := <-p.told:
		return one
	case <-p.ctx.Done():
		p.t.Fatal("nothing is told")
	}
	return ""
}

// stop ends the run, which no worker has claimed.
func (p *pusher) stop() {
	p.t.Helper()
	if _, err := p.c.Send(p.ctx, p.thread, events.CancelRun{ExecutionID: p.run}); err != nil {
		p.t.Fatal(err)
	}
}

// gone waits until no push is stored.
func (p *pusher) gone() {
	p.t.Helper()
	for {
		list, err := p.pushes.List(p.ctx, "acme", events.ListPushes{ThreadID: p.thread})
		if err != nil {
			p.t.Fatal(err)
		}
		if len(list.Pushes) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A hub that ends without having stored anything, as one that is killed, is followed by one that tells
// what was not accepted, and the push ends with the run.
func TestPush_ResumesAfterCrash(t *testing.T) {
	p := startPusher(t)
	p.refuse <- true
	cfg := p.config()
	lost := p.log
	p.log = p.open()
	unsaved := cfg
	unsaved.SaveEvery = time.Hour
	end := p.deliver(unsaved)
	p.set()
	p.stop()
	if got := p.next(); got != "refused" {
		t.Fatal(got)
	}
	p.log.Conn().Close() // so that nothing is stored at the end either
	end()
	p.log = lost
	<-p.refuse
	for len(p.told) > 0 {
		<-p.told
	}
	p.deliver(cfg)
	if got := p.next(); !strings.HasPrefix(got, "Bearer c-1 ") {
		t.Errorf("told %s", got)
	}
	p.gone()
}

// A push that was set before any hub ran is told of what happened since, once, and one whose endpoint
// accepts nothing ends.
func TestPush_GivesUp(t *testing.T) {
	p := startPusher(t)
	p.set()
	p.stop()
	p.refuse <- true
	cfg := p.config()
	cfg.PushAttempts = 3
	p.deliver(cfg)
	for range 3 {
		p.next()
	}
	p.gone()
}

// A push that is deleted is told nothing more, and one that is set again has its new credentials.
func TestPush_ChangesAndEnds(t *testing.T) {
	p := startPusher(t)
	p.refuse <- true
	p.set()
	p.deliver(p.config())
	other := p.to
	other.ID, other.URL = uuid.NewString(), "http://10.0.0.1/nowhere"
	if _, err := p.pushes.Set(p.ctx, "acme", p.thread, other); events.AsError(err).Code != events.Forbidden {
		t.Errorf("a private address: %v", err)
	}
	p.stop()
	if got := p.next(); got != "refused" {
		t.Fatal(got)
	}
	p.to.Credentials = "c-2"
	p.set()
	<-p.refuse
	for got := p.next(); ; got = p.next() {
		if got != "refused" {
			if !strings.HasPrefix(got, "Bearer c-") {
				t.Errorf("told %s", got)
			}
			break
		}
	}
	p.gone()
	if list, err := client.Read(p.ctx, p.c, events.ListPushes{ThreadID: p.thread}); err != nil || len(list.Pushes) != 0 {
		t.Errorf("%v, %s", list, fmt.Sprint(err))
	}
}
