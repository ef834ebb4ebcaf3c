package runtime

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// turn is one claim of one execution.
type turn struct {
	w         *Worker
	taking    context.Context // ends when the worker takes no more runs
	job       *queues.Run
	leave     func()         // releases its tenant's share
	claimed   *events.Commit // the claim, if it is committed; then agent is set
	logger    zerolog.Logger
	agent     *Agent
	run       thread.Run
	talk      *View
	chunks    *chunks.Writer
	scratch   *sync.Map
	live      live
	announced announced
	commits   int
	failure   string              // why the run failed
	code      events.FailureCode  // the reason that its model's endpoint has named, if any
	titled    bool                // the run has set the title to the beginning of the first message
	finish    string              // why the last reaction ended, if known
	noting    sync.Mutex          // held where run is set, and where calls read it, which are made meanwhile
	asking    sync.Mutex          // guards cut
	cut       func()              // ends the reactor's call; nil: none is in flight
	draft     draft               // of the open step
	holding   context.Context     // ends when waits for absent tools end, so that the run gives up its place
	missing   chan missingWorker  // tools that no process serves, as calls of the open step find them; nil: not recorded
	absent    *AbsentServersError // the missing MCP servers of the agent that took the thread over during a step; nil: none
	fresh     bool                // the open step was started by this claim
	token     int64               // of this claim, once it is watched
	since     int64               // the thread's version with this claim
	ctx       context.Context
	abort     context.CancelCauseFunc
}

// errAborted is the cause when a turn's context ends because its run was cancelled.
var errAborted = errors.New(thread.Aborted)

// errStopping is the reason to release a turn at a boundary.
var errStopping = errors.New("the worker stops")

// wallClockError is the cause when a turn's context ends because of its time limit.
type wallClockError struct{ limit time.Duration }

func (e *wallClockError) Error() string {
	return fmt.Sprintf("the limit of %v was reached", e.limit)
}

// execute runs the execution until it ends, waits, or is lost. A nil error means that its
// message can be acknowledged.
func (t *turn) execute(ctx context.Context) error {
	if err := t.claimRun(ctx); err != nil {
		var lost *thread.LostRunError
		if errors.As(err, &lost) && lost.Ended {
			return t.finishStream(ctx)
		}
		return err
	}
	defer func() {
		t.live.showConversation(nil) // later reads must not see this turn's conversation
		t.w.history.Return(t.job.Tenant, t.job.Thread, t.talk)
	}()
	defer func() { // also after a failure
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		t.unstream(t.chunks.Close(closing))
	}()
	deadline := &wallClockError{t.agent.Limits.WallClock}
	limited, cancel := context.WithTimeoutCause(ctx, t.agent.Limits.WallClock, deadline)
	defer cancel()
	t.ctx, t.abort = context.WithCancelCause(limited)
	defer t.abort(nil)
	defer t.w.watch(t)()
	defer t.ping()()
	if err := t.endOrphan(ctx); err != nil {
		return err
	}
	if t.run.Status == events.Executing && !t.run.Parked {
		if err := t.hookCalls().beforeRun(); err != nil {
			if err := t.fail(ctx, t.reactorCall().failureText(err), nil); err != nil {
				return err
			}
		}
	}
	for t.run.Status == events.Executing && !t.run.Parked {
		if t.taking != nil && t.taking.Err() != nil {
			return errStopping
		}
		if err := t.runStep(ctx); err != nil {
			return err
		}
	}
	if t.run.Status != events.Executing {
		return t.finishStream(ctx)
	}
	t.substate("waiting")
	return nil
}

// runStep calls the reactor of the open step, or makes its calls. It then ends the run if it is an
// orphan.
func (t *turn) runStep(ctx context.Context) error {
	step := t.reactorCall().runReactor
	switch {
	case t.absent != nil:
		step = func(ctx context.Context) error { return t.absence().awaitServers(ctx, t.agent, t.absent) }
	case t.run.Reacted:
		step = t.stepCalls().makeCalls
	}
	if err := step(ctx); err != nil {
		return err
	}
	return t.endOrphan(ctx)
}

// result returns the result of the execution for the metrics; "" if another worker had
// ended it before.
func (t *turn) result(err error) string {
	switch {
	case err == nil && t.chunks == nil:
		return ""
	case isLost(err):
		return RunLost
	case err != nil:
		return RunAgain
	case t.run.Status == events.ExecutionFailed:
		return RunFailed
	case t.run.Status == events.Executing:
		return RunWaits
	}
	return RunCompleted
}

// claimRun claims the execution, finds its agent, and reads its conversation.
func (t *turn) claimRun(ctx context.Context) error {
	name := t.job.Agent // the agent when the run was queued; only a handoff changes it
	var agentErr error
	commit := t.claimed
	if commit == nil {
		var agent *Agent
		if agent, agentErr = t.w.agent(ctx, t.job.Tenant, name); agent == nil {
			agent = (&Agent{Name: name}).withDefaults()
		}
		t.agent = agent
		var err error
		if commit, err = t.commit(ctx, "claim", t.claimFor(agent, t.absence().missingServers(agent, agentErr))); err != nil {
			return err
		}
	}
	if t.run.Agent != name && !t.run.Parked {
		var agent *Agent
		if agent, agentErr = t.w.agent(ctx, t.job.Tenant, t.run.Agent); agent != nil {
			t.agent = agent
		}
	}
	t.since = commit.Version
	for _, e := range commit.Events {
		if e.Type == events.StepCreatedType && e.Subject == t.run.StepID {
			t.fresh = true
		}
	}
	if t.run.Token > 1 && !t.run.Stop {
		t.logger.Info().Str("thread", t.job.Thread).Int64("claim", t.run.Token).Msg("a run continues here: it waited, or another worker had it")
	}
	t.talk = t.w.history.Take(t.job.Tenant, t.job.Thread)
	if err := t.readUntil(ctx, commit); err != nil {
		return err
	}
	t.live.showConversation(t.talk)
	if err := t.stream(commit.Version); err != nil {
		return err
	}
	if t.run.Token == 1 {
		t.emit("", Chunk{Type: ChunkContextID, Data: object("contextId", t.run.ContextID)})
	}
	if agentErr == nil || t.run.Status != events.Executing || t.run.Parked {
		return nil
	}
	if absent := (*AbsentServersError)(nil); errors.As(agentErr, &absent) {
		return t.absence().awaitServers(ctx, t.agent, absent)
	}
	return t.fail(ctx, events.AsError(agentErr).Message, nil)
}

// commit commits one boundary of the run, and updates the turn's view of the run.
func (t *turn) commit(ctx context.Context, what string, data any) (*events.Commit, error) {
	t.commits++
	id := t.job.Execution + ":" + strconv.FormatInt(t.run.Token, 10) + ":" + strconv.Itoa(t.commits)
	if t.talk == nil { // the claim, which sets the token of later commits
		id = t.job.Execution + ":" + t.w.newID()
	}
	commit, err := t.w.commands.Run(ctx, t.command(id, what, data), t.noteRun)
	if err != nil || commit == nil {
		return nil, err
	}
	for i := range commit.Events {
		d, ok := commit.Events[i].Data.(events.ProfileChanged)
		t.titled = t.titled || ok && d.TitleFrom == events.TitleFromMessage && commit.Events[i].CommandID == id
		t.logFailure(&commit.Events[i])
	}
	if t.talk != nil {
		err = t.readUntil(ctx, commit)
	}
	return commit, err
}

// logFailure logs the event that ends the run as failed.
func (t *turn) logFailure(e *events.Event) {
	if d, ok := e.Data.(events.ExecutionStatusChanged); ok && d.To == events.ExecutionFailed && e.Subject == t.job.Execution {
		t.logger.Info().Str("thread", t.job.Thread).Str("agent", t.agent.Name).Msg("a run failed; its execution says why")
	}
}

// command returns the command of a boundary.
func (t *turn) command(id, what string, data any) *thread.Command {
	return &thread.Command{
		ID: id, Tenant: t.job.Tenant, ThreadID: t.job.Thread, Actor: "skein:" + t.w.name,
		Parts: []thread.Part{{Name: "run." + what, Data: data}},
	}
}

// noteRun updates the turn's view of the run from the state.
func (t *turn) noteRun(s *thread.State) {
	if r, ok := s.Run(t.job.Execution); ok {
		t.noting.Lock()
		t.run = r
		t.noting.Unlock()
	}
	t.live.noteState(t.job.Execution)(s)
}

// noteOwnRun is noteRun while this claim is the run's last one. Once another claim has continued
// the run, its changes do not concern this turn.
func (t *turn) noteOwnRun(s *thread.State) {
	if r, ok := s.Run(t.job.Execution); ok && r.Token == t.run.Token {
		t.noteRun(s)
	}
}

// readUntil reads commits until the conversation shows a commit.
func (t *turn) readUntil(ctx context.Context, commit *events.Commit) error {
	t.live.talking.Lock()
	defer t.live.talking.Unlock()
	for attempts := (retry.Policy{First: time.Millisecond, Max: 2 * time.Second, Limit: 4 * time.Second}).Start(); !t.talk.Apply(commit); {
		if err := t.w.history.Follow(ctx, t.talk, t.job.Tenant, t.job.Thread); err != nil {
			return err
		}
		if t.talk.Version() >= commit.Version {
			return nil
		}
		switch err := attempts.Wait(ctx); {
		case errors.Is(err, retry.ErrExhausted): // the replica lags
			return events.Errorf(events.Unavailable, "the log does not show version %d of thread %s", commit.Version, t.job.Thread)
		case err != nil:
			return err
		}
	}
	return nil
}

// fail ends the run as failed, or as stopped if a stop was requested.
func (t *turn) fail(ctx context.Context, text string, parts []part) error {
	t.failure = text
	d := thread.FailRun{ExecutionID: t.job.Execution, Token: t.run.Token, ErrorText: text, ErrorCode: t.code}
	for _, p := range parts {
		d.Parts, d.Types = append(d.Parts, p.raw), append(d.Types, p.kind)
	}
	d.Records = t.live.takeSpans()
	_, err := t.commit(ctx, "fail", d)
	return err
}

// finishStream finishes a turn whose execution has ended: it ends the stream, and notifies the
// call that waits for it.
func (t *turn) finishStream(ctx context.Context) error {
	if t.chunks != nil { // otherwise the worker has ended the stream, or readers see the end in the execution
		if t.run.Status == events.ExecutionFailed && t.failure == "" {
			t.failure = "the run failed; its execution says why"
		}
		t.hookCalls().afterRun(t.failure)
		end := events.FinishOf(t.run.Status, t.failure)
		switch {
		case t.run.Stop:
			end = events.Finish{Reason: events.FinishOther, ErrorText: t.failure}
		case end.Reason == events.FinishStop && t.finish != "":
			end.Reason = t.finish
		case end.Reason == events.FinishStop && t.reactorCall().callerCalls():
			end.Reason = events.FinishToolCalls
		}
		t.unstream(t.chunks.Finish(ctx, end))
	} else if err := t.w.commands.Look(ctx, t.job.Tenant, t.job.Thread, t.noteRun); err != nil {
		return err
	}
	return t.w.tellParent(ctx, t.job.Tenant, t.run)
}

// stream starts the stream of the run's chunks.
func (t *turn) stream(version int64) (err error) {
	t.chunks, err = chunks.NewWriter(t.w.log, chunks.Run{
		Tenant: t.job.Tenant, Thread: t.job.Thread, Execution: t.job.Execution, Token: t.run.Token, Version: version,
		Since: t.run.Begun.Go(),
	})
	return err
}

// unstream logs that a stream could not be finished. This is harmless: chunks are not state, and
// readers also see the end of the execution.
func (t *turn) unstream(err error) {
	if err != nil {
		t.logger.Warn().Err(err).Msg("cannot store all chunks of a run")
	}
}

// emit streams a chunk. An invalid chunk of a reactor is dropped.
func (t *turn) emit(step string, c Chunk) {
	if t.chunks == nil {
		return
	}
	ctx := t.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if err := t.chunks.Emit(ctx, step, c.Type, c.Data); err != nil {
		t.logger.Debug().Err(err).Str("type", clip(c.Type)).Msg("a chunk was dropped")
	}
}

func (t *turn) substate(name string) {
	t.emit(t.run.StepID, Chunk{Type: ChunkContextSubstate, Data: object("substate", name)})
}
