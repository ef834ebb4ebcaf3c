package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
	"github.com/skein-threads/skein/schema"
)

// ImportSource is a file of conversations. Open is called when its turn comes.
type ImportSource struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// ImportProblem is what is wrong with one conversation, or with a file. The
// conversation was not imported, or not to its end.
type ImportProblem struct {
	File    string
	Line    int // 0: the file as a whole
	Message string
}

// ImportSummary says what an import added.
type ImportSummary struct {
	Conversations int     `json:"conversations"` // that got anything new
	Unchanged     int     `json:"unchanged"`     // that were there already
	Failed        int     `json:"failed"`        // that were not imported, or not to their end
	Turns         int     `json:"turns"`
	Items         int     `json:"items"`
	ToolCalls     int     `json:"toolCalls"`
	Events        int     `json:"events"`
	Seq           int64   `json:"seq"` // the log's sequence of the newest commit; 0 if nothing was added
	Seconds       float64 `json:"seconds"`
}

// ImportOptions says how to import. The zero value of a field means its default.
type ImportOptions struct {
	Parallel int                 // conversations imported at once; default 8
	Ignore   []string            // fields of the file that are left out; any other that is not read is a problem
	Problem  func(ImportProblem) // is told of each problem, one at a time
	Progress func(ImportSummary) // is told how far it has got, one at a time
}

// ImportConversations imports the conversations of files. What is wrong with one of them is
// told to Problem; an error means that the import could not go on.
func ImportConversations(ctx context.Context, c *client.Client, sources []ImportSource, o ImportOptions) (ImportSummary, error) {
	if o.Parallel <= 0 {
		o.Parallel = 8
	}
	start := time.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	check, err := schema.New()
	if err != nil {
		return ImportSummary{}, err
	}
	im := &importer{client: c, options: o, check: check, stop: stop, seen: map[string]bool{}}
	work := make(chan job)
	var workers sync.WaitGroup
	for range o.Parallel {
		workers.Go(func() {
			for j := range work {
				im.conversation(ctx, j)
			}
		})
	}
	for _, s := range sources {
		im.file(ctx, s, work)
	}
	close(work)
	workers.Wait()
	im.sum.Seconds = time.Since(start).Seconds()
	return im.sum, context.Cause(ctx)
}

// job is one conversation to import.
type job struct {
	file         string
	line         int
	conversation *openaichat.Conversation
}

type importer struct {
	client  *client.Client
	options ImportOptions
	check   *schema.Validator
	stop    context.CancelCauseFunc
	seen    map[string]bool // ids; of the goroutine that reads

	mu  sync.Mutex // guards sum, and the callbacks
	sum ImportSummary
}

// file hands the conversations of a file to the workers.
func (im *importer) file(ctx context.Context, s ImportSource, work chan<- job) {
	if ctx.Err() != nil {
		return
	}
	r, err := s.Open()
	if err != nil {
		im.problem(ImportProblem{File: s.Name, Message: err.Error()})
		return
	}
	defer func() { _ = r.Close() }() // it was only read
	for rec := range openaichat.Read(r, im.options.Ignore...) {
		switch {
		case rec.Err != nil:
			im.problem(ImportProblem{s.Name, rec.Line, rec.Err.Error()})
			continue
		case im.seen[rec.Conversation.ID]:
			im.problem(ImportProblem{s.Name, rec.Line, "a conversation with this id came before"})
			continue
		}
		im.seen[rec.Conversation.ID] = true
		select {
		case work <- job{s.Name, rec.Line, rec.Conversation}:
		case <-ctx.Done():
			return
		}
	}
}

func (im *importer) problem(p ImportProblem) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.sum.Failed++
	if im.options.Problem != nil {
		im.options.Problem(p)
	}
}

// add notes what was added, and tells how far the import has got.
func (im *importer) add(s ImportSummary) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.sum.Conversations += s.Conversations
	im.sum.Unchanged += s.Unchanged
	im.sum.Turns += s.Turns
	im.sum.Items += s.Items
	im.sum.ToolCalls += s.ToolCalls
	im.sum.Events += s.Events
	im.sum.Seq = max(im.sum.Seq, s.Seq)
	if im.options.Progress != nil {
		im.options.Progress(im.sum)
	}
}

// conversation imports one conversation, or says why not.
func (im *importer) conversation(ctx context.Context, j job) {
	if ctx.Err() != nil {
		return
	}
	added, err := im.thread(ctx, j.conversation)
	var unfit *unfitError
	switch {
	case err == nil && added:
		im.add(ImportSummary{Conversations: 1})
	case err == nil:
		im.add(ImportSummary{Unchanged: 1})
	case ctx.Err() != nil:
	case errors.As(err, &unfit):
		im.problem(ImportProblem{j.file, j.line, unfit.cause.Error()})
	case events.AsError(err).Retry() || events.HasCode(err, events.Forbidden):
		im.stop(err) // not this conversation's fault: the others would fare no better
	default:
		im.problem(ImportProblem{j.file, j.line, err.Error()})
	}
}

// unfitError says that a conversation cannot be a thread.
type unfitError struct{ cause error }

func (e *unfitError) Error() string { return e.cause.Error() }

func (e *unfitError) Unwrap() error { return e.cause }

// attempts bounds how often a conversation is planned again because another import of it was
// faster.
const attempts = 3

// thread imports one conversation and reports whether anything was added.
func (im *importer) thread(ctx context.Context, c *openaichat.Conversation) (bool, error) {
	key := openaichat.KeyPrefix + c.ID
	tenant := im.client.Tenant()
	thread := events.DeriveThreadID(tenant, key)
	if err := CheckConversation(im.check, tenant, c); err != nil {
		return false, &unfitError{err} // before anything is written
	}
	have, added := nothing(), false
	reply, err := im.client.Send(ctx, "", create(c), client.ThreadID(thread))
	switch {
	case err == nil:
		added = true
		im.add(ImportSummary{Events: len(reply.Events), Seq: reply.Seq})
	case events.HasCode(err, events.AlreadyExists):
		have, err = learn(ctx, im.client, thread)
		if events.IsNotFound(err) {
			err = &unfitError{fmt.Errorf("its thread %s was deleted, or another thread holds the key %s", thread, key)}
		}
		if err != nil {
			return false, err
		}
	default:
		return false, err
	}
	for attempt := 1; ; attempt++ {
		commits, err := plan(tenant, thread, c, have, nil)
		if err != nil {
			return added, &unfitError{err}
		}
		some, err := im.commits(ctx, thread, commits)
		added = added || some
		lost := events.HasCode(err, events.AlreadyExists, events.IllegalTransition)
		if !lost || attempt == attempts {
			return added, err
		}
		if have, err = learn(ctx, im.client, thread); err != nil {
			return added, err
		}
	}
}

// commits does commits one after another and reports whether any was done.
func (im *importer) commits(ctx context.Context, thread string, list []commit) (bool, error) {
	for i, c := range list {
		reply, err := im.client.Commit(ctx, thread, c.commands(), client.CommandID(c.id))
		if err != nil {
			return i > 0, err
		}
		im.add(ImportSummary{Turns: c.counts.turns, Items: c.counts.items, ToolCalls: c.counts.calls, Events: len(reply.Events), Seq: reply.Seq})
	}
	return len(list) > 0, nil
}
