package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Intervals at which an absent reactor or tool is called again. Each attempt costs one message
// that no responder receives.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 2 * time.Second
)

// missingWorker is a reactor or tool that no process serves, and how long to wait for it.
type missingWorker struct {
	events.WaitFor
	most  time.Duration // how long to wait; negative: do not wait
	since time.Time     // start of the wait; zero: not waiting yet
	met   time.Time     // start of the wait in this claim; zero: not waiting yet
	looks int           // number of attempts
	// elsewhere means that this process can never reach it, so the run gives up its place at once.
	elsewhere bool
}

// wait waits until the next attempt. It returns false if the time to wait is over.
func (l *missingWorker) wait(ctx context.Context) bool {
	if l.since.IsZero() {
		l.since = time.Now()
	}
	left := l.most - time.Since(l.since)
	if left <= 0 || ctx.Err() != nil {
		return false
	}
	l.looks++
	return retry.Sleep(ctx, min(retry.Policy{First: firstLook, Max: lastLook}.Delay(l.looks), left))
}

// deadline returns when the wait is over.
func (l *missingWorker) deadline() time.Time { return l.since.Add(l.most) }

// gaveUp returns the error after the time to wait is over.
func (l *missingWorker) gaveUp(err error) error {
	if l.most <= 0 {
		return err
	}
	return fmt.Errorf("no process served the %s %s for %s: %w", l.Kind, clip(l.Name), time.Since(l.since).Round(time.Second), err)
}

// absence handles the waits of a run for workers that no process serves: a reactor, tools or MCP
// servers.
type absence struct{ *turn }

func (t *turn) absence() absence { return absence{t} }

// awaitReactor waits until an absent reactor is to be called again, and records the wait on the
// thread. It returns false if the time to wait is over, or the run was stopped.
func (t absence) awaitReactor(ctx context.Context, l *missingWorker) (again bool, err error) {
	if l.met.IsZero() {
		l.met = time.Now()
		left := l.most
		if !l.since.IsZero() {
			left -= time.Since(l.since)
		}
		if left > 0 {
			if err := t.awaitWorkers(ctx, []events.WaitFor{l.WaitFor}, time.Now().Add(left)); err != nil {
				return false, err
			}
		}
	}
	again = l.wait(t.ctx)
	if t.taking != nil && t.taking.Err() != nil { // another worker continues to wait
		return false, errStopping
	}
	return again && !t.stopping(), nil
}

// parks reports whether the run has waited for its reactor long enough to give up its place.
func (t absence) parks(l *missingWorker) bool {
	return t.w.cfg.ParkAfter > 0 && !l.met.IsZero() && time.Since(l.met) >= t.w.cfg.ParkAfter
}

// awaitWorkers records everything the run waits for, and when the first of those waits is over.
func (t absence) awaitWorkers(ctx context.Context, lacks []events.WaitFor, until time.Time) error {
	t.substate("waiting")
	_, err := t.commit(ctx, "wait", thread.AwaitWorkers{
		ExecutionID: t.job.Execution, Token: t.run.Token, For: lacks, Until: events.TimeOf(until).String(),
	})
	return err
}

// awaitTools records the tools that calls wait for.
func (t absence) awaitTools(ctx context.Context, lacks []missingWorker) error {
	until := lacks[0].deadline()
	var all []events.WaitFor
	for _, l := range lacks {
		all = append(all, l.WaitFor)
		if l.deadline().Before(until) {
			until = l.deadline()
		}
	}
	return t.awaitWorkers(ctx, all, until)
}

// missingToolOf returns the missingWorker for a call's tool, to be used if no process serves it.
func (t absence) missingToolOf(c thread.Call, tool Tool) missingWorker {
	spec := tool.Spec()
	most := spec.WorkerWait
	if most == 0 {
		most = t.agent.Limits.WorkerWait
	}
	l := missingWorker{WaitFor: events.WaitFor{Kind: events.ToolWorker, Name: c.Name, CallID: c.CallID}, most: most}
	if c.UnavailableSince != 0 { // an earlier claim has waited, too
		l.since = c.UnavailableSince.Go()
	}
	if _, ok := tool.(AbsentTool); ok {
		l.Name, l.elsewhere = events.GoToolPrefix+c.Name, true
	}
	return l
}

// parkAt returns when a run that waits for nothing but these tools gives up its place.
func (t absence) parkAt(lacks []missingWorker) (at time.Time) {
	for _, l := range lacks {
		until := l.met
		if !l.elsewhere {
			until = until.Add(t.w.cfg.ParkAfter)
		}
		if until.After(at) {
			at = until
		}
	}
	return at
}

// errParked is the cause that ends the waits of calls for their tools when the run gives up its
// place.
var errParked = errors.New("the run gives up its place")

// awaitTool waits until an absent tool is to be called again. It returns false if the call must
// not wait longer. unmade means that the run gives up its place, and the call stays unmade. It
// runs in the goroutine of the call.
func (t absence) awaitTool(l *missingWorker) (again, unmade bool) {
	if l.met.IsZero() {
		l.met = time.Now()
		if l.since.IsZero() {
			l.since = l.met
		}
		if l.deadline().After(l.met) && t.missing != nil {
			t.missing <- *l // never blocks: it buffers one for each call
		}
	}
	again = l.wait(t.holding) && !t.stopping()
	return again, !again && t.ctx.Err() == nil && errors.Is(context.Cause(t.holding), errParked)
}

// stopping reports whether the run was stopped.
func (t *turn) stopping() bool {
	t.live.mu.Lock()
	defer t.live.mu.Unlock()
	return t.live.run.Stop
}

// missingServers returns the MCP servers that a run waits for, if err is an *AbsentServersError.
// It returns none if this worker does not park runs (Config.ParkAfter), because nothing would wake
// them.
func (t absence) missingServers(agent *Agent, err error) (lacks []thread.MissingServer) {
	var absent *AbsentServersError
	if t.w.cfg.ParkAfter <= 0 || !errors.As(err, &absent) {
		return nil
	}
	for _, s := range absent.Servers {
		wait := s.Wait
		if wait == 0 {
			wait = agent.Limits.WorkerWait
		}
		lacks = append(lacks, thread.MissingServer{WaitFor: events.WaitFor{Kind: events.ToolWorker, Name: events.MCPPrefix + s.Tool}, Wait: wait})
	}
	return lacks
}

// awaitServers parks the run until the missing MCP servers can be reached. It fails the run if the
// time to wait for one of them is over. A stopped run continues without them, because it makes no
// call.
func (t absence) awaitServers(ctx context.Context, agent *Agent, absent *AbsentServersError) error {
	if t.run.Stop {
		t.absent = nil
		return nil
	}
	lacks := t.missingServers(agent, absent)
	since := time.Now()
	if t.run.ServerMissingSince != 0 { // an earlier claim has waited, too
		since = t.run.ServerMissingSince.Go()
	}
	var all []events.WaitFor
	var until time.Time
	for _, l := range lacks {
		all = append(all, l.WaitFor)
		if over := since.Add(l.Wait); until.IsZero() || over.Before(until) {
			until = over
		}
	}
	if !until.After(time.Now()) {
		waited := ""
		if t.run.ServerMissingSince != 0 {
			waited = fmt.Sprintf(" for %s", time.Since(since).Round(time.Second))
		}
		return t.fail(ctx, fmt.Sprintf("an MCP server that agent %s needs could not be reached%s: %s; start the server, or change the tool's definition, and retry the run", agent.Name, waited, clip(absent.Error())), nil)
	}
	if err := t.awaitWorkers(ctx, all, until); err != nil {
		return err
	}
	_, err := t.commit(ctx, "park", thread.ParkRun{ExecutionID: t.job.Execution, Token: t.run.Token})
	return err
}
