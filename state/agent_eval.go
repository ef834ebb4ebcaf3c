package state

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// EvalResult is the verdict of an eval on a run.
type EvalResult struct {
	Passed bool    `json:"passed"`
	Score  float64 `json:"score,omitzero"` // for evals that measure
	Reason string  `json:"reason,omitzero"`
}

// eval is a function that judges runs.
type eval[In, Out any] struct {
	name string
	run  func(context.Context, AgentRun[In, Out]) (EvalResult, error)
}

// EvalRecord is the data of the log line that records an eval.
type EvalRecord struct {
	Agent     string `json:"agent"`
	Eval      string `json:"eval"`
	SessionID string `json:"sessionId"`
	EvalResult
	ErrorText string `json:"errorText,omitzero"` // set if the eval failed or panicked; then there is no result
}

// WithEval adds an eval: a function that judges a run that has completed. It runs in the
// background after the response, as WaitUntil does; nothing may change the input and output until
// it has ended. Its result is a line of the thread's log, with an EvalRecord as data: at level
// info if it passed, warn if not, and error if the eval itself failed. A thread that does not
// exist yet is created for it. Evals of one run run one after the other, in the order in which
// they were added.
func WithEval[In, Out any](name string, f func(context.Context, AgentRun[In, Out]) (EvalResult, error)) AgentOption[In, Out] {
	return func(a *Agent[In, Out]) error {
		switch {
		case !listenerName.MatchString(name):
			return events.Invalid("", "agent %s: the name of an eval is %.80q; use 1 to 64 letters, digits, - and _", a.name, name)
		case f == nil:
			return events.Invalid("", "agent %s: its eval %s has no function", a.name, name)
		}
		for _, e := range a.evals {
			if e.name == name {
				return events.Invalid("", "agent %s: two evals have the name %s", a.name, name)
			}
		}
		a.evals = append(a.evals, eval[In, Out]{name, f})
		return nil
	}
}

// evaluate runs the evals in the background, once the request is answered.
func (a *Agent[In, Out]) evaluate(ctx context.Context, s *scope, r AgentRun[In, Out]) {
	if len(a.evals) == 0 {
		return
	}
	err := WaitUntil(ctx, func(ctx context.Context) error {
		select {
		case <-s.answered:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, e := range a.evals {
			record := EvalRecord{Agent: a.name, Eval: e.name, SessionID: s.session.ID}
			if err := protect(ctx, func(ctx context.Context) (err error) {
				record.EvalResult, err = e.run(ctx, r)
				return err
			}); err != nil {
				record.EvalResult, record.ErrorText = EvalResult{}, err.Error()
				s.logger.ErrorContext(ctx, "an eval failed", "agent", a.name, "eval", e.name, "error", err)
			}
			s.recordEval(ctx, record)
		}
		return nil
	})
	if err != nil {
		s.fail(ctx, "the evals of agent "+a.name+" did not run", err)
	}
}

// recordEval records an eval on the thread.
func (s *scope) recordEval(ctx context.Context, r EvalRecord) {
	r.Reason, r.ErrorText = excerpt.Head(r.Reason, maxRecord), excerpt.Head(r.ErrorText, maxRecord)
	data, err := json.Marshal(r)
	if err != nil { // a score that is NaN or infinite
		r.EvalResult, r.ErrorText = EvalResult{}, excerpt.Head("its result cannot be encoded as JSON: "+err.Error(), maxRecord)
		data, err = json.Marshal(r)
	}
	if err == nil {
		line := events.RecordTrace{Kind: events.TraceLog, SessionID: s.session.ID, Name: "eval", Data: data}
		line.Level, line.Text = r.line()
		err = s.record(ctx, line)
	}
	if err != nil {
		s.logger.ErrorContext(ctx, "the result of an eval was not recorded", "agent", r.Agent, "eval", r.Eval, "passed", r.Passed, "reason", r.Reason, "error", err)
	}
}

// line returns the level and text of the log line for an eval.
func (r *EvalRecord) line() (level events.LogLevel, text string) {
	text = "eval " + r.Eval + " of agent " + r.Agent
	switch {
	case r.ErrorText != "":
		return events.LogError, excerpt.Head(text+" failed: "+r.ErrorText, maxRecord)
	case r.Passed:
		return events.LogInfo, text + " passed"
	default:
		return events.LogWarn, excerpt.Head(text+" did not pass: "+r.Reason, maxRecord)
	}
}

// record appends a line to the log of the thread, which it creates if it does not exist.
func (s *scope) record(ctx context.Context, line events.RecordTrace) error {
	ctx, c, t := context.WithoutCancel(ctx), s.app.opts.Client, s.session.Thread
	_, err := c.Send(ctx, t.ID, line)
	if !events.IsNotFound(err) {
		return err
	}
	if _, err := c.Send(ctx, t.ID, events.CreateThread{UserID: t.user}); err != nil && !events.HasCode(err, events.AlreadyExists) {
		return err
	}
	_, err = c.Send(ctx, t.ID, line)
	return err
}
