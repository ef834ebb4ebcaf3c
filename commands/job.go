package commands

import (
	"context"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// jobKind says what a job does on its thread, and what its result is.
type jobKind int

const (
	requested jobKind = iota // a client's command; the result is a reply
	internal                 // a command of this process; the result is job.commit
	joining                  // an internal command that goes into the commit of the job before it, or fails
	asking                   // asks whether a command was executed; the result is a reply with the sequence, or nil
	looking                  // looks at the state
	locking                  // locks the thread for a command over several threads
)

// job is a unit of work for the goroutine of its thread.
type job struct {
	kind jobKind
	ctx  context.Context
	done chan jobResult // of capacity 1

	tenant, thread string
	id             string          // of the command
	command        *thread.Command // nil if the job changes nothing
	asks           *thread.Command // if it is asking
	key            *claim          // of a command that may claim a key: the state of the key that the caller has read; nil: it has not read it
	joined         *Joined         // if it is joining
	lock           *threadLock     // if it is locking

	look   func(*thread.State) // sees the current state; may be nil
	commit *events.Commit      // the commit with the command, once the job has ended
}

type jobResult struct {
	reply *events.Reply
	err   error
}

// commandJob returns a job that runs a command.
func commandJob(ctx context.Context, kind jobKind, c *thread.Command) *job {
	return &job{kind: kind, ctx: ctx, done: make(chan jobResult, 1), tenant: c.Tenant, thread: c.ThreadID, id: c.ID, command: c}
}

// askJob returns a job that asks whether a thread has executed a command.
func askJob(ctx context.Context, threadID string, c *thread.Command) *job {
	return &job{kind: asking, ctx: ctx, done: make(chan jobResult, 1), tenant: c.Tenant, thread: threadID, id: c.ID, asks: c}
}

// lookJob returns a job that passes the state of a thread to look.
func lookJob(ctx context.Context, tenant, threadID string, look func(*thread.State)) *job {
	return &job{kind: looking, ctx: ctx, done: make(chan jobResult, 1), tenant: tenant, thread: threadID, look: look}
}

// changes reports whether the job may change its thread.
func (j *job) changes() bool { return j.command != nil }

// alone reports whether the job must be the first of its commit: it reads what is stored, may
// touch a key, or is a dry run.
func (j *job) alone() bool { return !j.changes() || claims(j.command) || j.command.Dry() }

// deletes reports whether the job deletes its thread.
func (j *job) deletes() bool {
	if j.command == nil {
		return false
	}
	_, ok := j.command.Parts[0].Data.(events.DeleteThread)
	return ok
}

// claims reports whether a command may claim or release a key, and so needs a commit of its
// own.
func claims(c *thread.Command) bool {
	switch c.Parts[0].Data.(type) {
	case events.CreateThread, events.ResolveThread, events.DeleteThread:
		return true
	}
	return false
}

// show passes a state to the job.
func (j *job) show(s *thread.State) {
	if j.look != nil {
		j.look(s)
	}
}

// finish ends the job with a reply or an error.
func (j *job) finish(reply *events.Reply, err error) {
	if j.kind == joining {
		j.joined.Done(j.commit, err)
		return
	}
	j.done <- jobResult{reply, err}
}

// stored ends a job after its command was stored in a commit.
func (j *job) stored(commit *events.Commit) {
	j.commit = commit
	if j.kind != requested {
		j.finish(nil, nil)
		return
	}
	j.finish(withToken(events.ReplyOf(commit, j.id), j.command, untilIn(commit, j.id)))
}
