package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// Elsewhere is servers and Skeins that run already, in processes of their own.
type Elsewhere struct {
	b *bench
}

// Connect connects to them. o.LoadArgs make this program run RunLoad.
func Connect(url string, o Options) (*Elsewhere, error) {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &Elsewhere{b: &bench{o: o.withDefaults(), url: url, nc: nc, log: log}}, nil
}

// Close ends the connection.
func (e *Elsewhere) Close() {
	e.b.log.Close()
	e.b.nc.Close()
}

// Commits measures thread.commit with each number of clients.
func (e *Elsewhere) Commits(ctx context.Context) ([]Case, error) {
	threads, err := e.b.create(ctx, e.b.o.Threads)
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, clients := range e.b.o.Clients {
		if err := e.b.caughtUp(ctx); err != nil {
			return nil, err
		}
		e.b.o.Log(fmt.Sprintf("thread.commit, %d clients", clients))
		settle()
		got, err := Load{URL: e.b.url, Clients: clients, Threads: threads, Millis: e.b.duration().Milliseconds()}.start(ctx, e.b.o.LoadArgs)
		if err != nil {
			return nil, err
		}
		c := measured("skein", clients, got.durations(), time.Duration(got.Elapsed))
		c.Refused, c.ClientMicros = got.Refused, float64(got.Processor)/1000/float64(max(c.Commits, 1))
		out = append(out, c)
	}
	return out, nil
}

// Leader returns the name of the server that leads the log.
func (e *Elsewhere) Leader(ctx context.Context) (string, error) {
	js, err := jetstream.New(e.b.nc)
	if err != nil {
		return "", err
	}
	s, err := js.Stream(ctx, "SKEIN_LOG")
	if err != nil {
		return "", err
	}
	info, err := s.Info(ctx)
	switch {
	case err != nil:
		return "", err
	case info.Cluster == nil || info.Cluster.Leader == "":
		return "", errors.New("the log has no leader")
	}
	return info.Cluster.Leader, nil
}

// Survival is what clients saw of a failure amid their commits.
type Survival struct {
	Clients      int     `json:"clients"`
	Commits      int     `json:"commits"` // acknowledged
	Before       float64 `json:"commitsPerSecondBefore"`
	After        float64 `json:"commitsPerSecondAfter"` // of the last third
	PauseSeconds float64 `json:"pauseSeconds"`          // the longest time without an acknowledgement
	Repeated     int     `json:"repeated"`              // requests that were sent again, with the same id
	Lost         int     `json:"lost"`                  // acknowledged, and not in the log
	Twice        int     `json:"twice"`                 // commands that are in the log more than once
	Missing      []Loss  `json:"missing,omitempty"`     // the first of those lost
}

// Loss is an acknowledged commit that the log does not confirm.
type Loss struct {
	Thread  string `json:"thread"`
	Command string `json:"command"`
	Version int64  `json:"version"` // that its client was told
	Found   int64  `json:"found"`   // the version of the command's commit in the log; 0: there is none
	Last    int64  `json:"last"`    // of the thread in the log
}

// mostLosses is how many losses a Survival names.
const mostLosses = 10

// acknowledged is a commit as its client knows it.
type acknowledged struct {
	thread  string
	command string
	version int64
	at      time.Time
}

// Survive lets clients commit for three times the duration of a case, has something fail after the
// first third, and compares the log with what they were told. A client whose request is not
// answered, or is answered with an error, sends it again.
func (e *Elsewhere) Survive(ctx context.Context, clients int, fail func() error) (*Survival, error) {
	threads, err := e.b.create(ctx, max(e.b.o.Threads, clients))
	if err != nil {
		return nil, err
	}
	third := e.b.duration()
	run, cancel := context.WithTimeout(ctx, 3*third)
	defer cancel()
	s := &Survival{Clients: clients}
	var mu sync.Mutex // guards all and s.Repeated
	var all []acknowledged
	begun := time.Now()
	var working sync.WaitGroup
	for c := range clients {
		working.Go(func() {
			acks, repeated := e.commits(run, c, clients, threads)
			mu.Lock()
			defer mu.Unlock()
			all, s.Repeated = append(all, acks...), s.Repeated+repeated
		})
	}
	time.Sleep(third)
	failed := fail()
	working.Wait()
	if err := errors.Join(failed, ctx.Err()); err != nil {
		return nil, err
	}
	s.count(all, begun, third)
	return s, e.compare(ctx, s, all)
}

// commits sends commits of one client until the run ends, and returns those acknowledged.
func (e *Elsewhere) commits(run context.Context, client, clients int, threads []string) (acks []acknowledged, repeated int) {
	requests, nonce := newRequests(), uuid.NewString()[:8]
	subject := events.DefaultNames().Command(tenant, "thread.commit")
	for i := 0; ; i++ {
		thread := threads[(client+i*clients)%len(threads)]
		command := fmt.Sprintf("%s-%x-%x", nonce, client, i)
		body := requests.make(thread, command)
		for {
			if run.Err() != nil {
				return acks, repeated
			}
			asked, cancel := context.WithTimeout(run, 5*time.Second)
			reply, err := e.b.nc.RequestWithContext(asked, subject, body)
			cancel()
			var done events.Reply
			if err == nil && reply.Header.Get(events.HeaderErrorCode) == "" && json.Unmarshal(reply.Data, &done) == nil {
				acks = append(acks, acknowledged{thread: thread, command: command, version: done.Version, at: time.Now()})
				break
			}
			if run.Err() == nil {
				repeated++
				time.Sleep(20 * time.Millisecond) // a server that is gone refuses at once
			}
		}
	}
}

// count works out the rates and the longest pause.
func (s *Survival) count(all []acknowledged, begun time.Time, third time.Duration) {
	slices.SortFunc(all, func(a, b acknowledged) int { return a.at.Compare(b.at) })
	last := begun
	for _, a := range all {
		s.PauseSeconds = max(s.PauseSeconds, a.at.Sub(last).Seconds())
		last = a.at
		switch passed := a.at.Sub(begun); {
		case passed < third:
			s.Before++
		case passed >= 2*third:
			s.After++
		}
	}
	s.PauseSeconds = max(s.PauseSeconds, begun.Add(3*third).Sub(last).Seconds())
	s.Commits, s.Before, s.After = len(all), s.Before/third.Seconds(), s.After/third.Seconds()
}

// compare reads the threads' logs.
func (e *Elsewhere) compare(ctx context.Context, s *Survival, all []acknowledged) error {
	told := map[string]map[string]int64{}
	for _, a := range all {
		if told[a.thread] == nil {
			told[a.thread] = map[string]int64{}
		}
		told[a.thread][a.command] = a.version
	}
	for thread, commands := range told {
		found, last := map[string]int64{}, int64(0)
		for c, err := range e.b.log.Thread(ctx, tenant, thread, 1) {
			if err != nil {
				return err
			}
			s.Twice += note(found, c)
			last = c.Version
		}
		for command, version := range commands {
			if found[command] == version {
				continue
			}
			if s.Lost++; s.Lost <= mostLosses {
				s.Missing = append(s.Missing, Loss{Thread: thread, Command: command, Version: version, Found: found[command], Last: last})
			}
		}
	}
	return nil
}

// note records to which version each command of a commit took its thread: commands that waited
// at the same time share one. It returns how many were recorded before.
func note(found map[string]int64, c *events.Commit) (again int) {
	own := map[string]bool{}
	for i := range c.Events {
		command := c.Events[i].CommandID
		if _, before := found[command]; before && !own[command] {
			again++
		}
		own[command], found[command] = true, c.Events[i].Version
	}
	return again
}
