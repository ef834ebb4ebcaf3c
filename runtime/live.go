package runtime

import (
	"sync"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// live is what others than the goroutine of a turn see of it: tools and hooks,
// which may work on while it goes on.
type live struct {
	mu      sync.Mutex // guards what follows; held for moments
	run     thread.Run
	thread  known
	now     bool                   // it is to stop without waiting for a model
	discard bool                   // what was streamed is not kept
	spans   []events.TraceRecorded // that the next commit records

	talking sync.Mutex    // guards talk, while it changes and while it is read by others
	talk    *conversation // nil when the turn is over
}

// see notes what the state knows of a run.
func (l *live) see(execution string) func(*thread.State) {
	return func(s *thread.State) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r, ok := s.Run(execution); ok {
			l.run = r
		}
		l.thread.agent, l.thread.user, l.thread.created = s.AgentID(), s.UserID(), int64(s.CreatedAt())
		l.thread.seq = max(l.thread.seq, int64(s.Seq))
	}
}

// stop notes that the run was told to stop, by whomever.
func (l *live) stop(d events.RunStopped) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.Stop, l.run.StoppedBy = true, d.By
	l.discard, l.now = l.discard || d.Discard, l.now || d.Now
}

// talks shows a conversation; nil that there is none to be shown any more.
func (l *live) talks(c *conversation) {
	l.talking.Lock()
	defer l.talking.Unlock()
	l.talk = c
}

func (l *live) messages(context string) []events.ThreadMessage {
	l.talking.Lock()
	defer l.talking.Unlock()
	if l.talk == nil {
		return []events.ThreadMessage{}
	}
	return l.talk.messages(context)
}

// maxSpans bounds what calls within a run may record between two commits.
const maxSpans = 1000

// span notes a span that the next commit of the run records.
func (l *live) span(r events.TraceRecorded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spans) < maxSpans {
		l.spans = append(l.spans, r)
	}
}

// records gives the spans that wait, after others.
func (l *live) records(own ...events.TraceRecorded) []events.TraceRecorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	own = append(own, l.spans...)
	l.spans = nil
	return own
}

// messages gives what has been said in a context as messages, the calls of each
// with it.
func (c *conversation) messages(context string) []events.ThreadMessage {
	calls := map[string][]*events.Item{}
	for _, s := range c.items {
		if s.Type == events.ActionExecute && s.CallOf != nil && !s.deleted {
			calls[s.ParentItemID] = append(calls[s.ParentItemID], &s.Item)
		}
	}
	out := []events.ThreadMessage{}
	for _, s := range c.items {
		if s.deleted || s.ContextID != context {
			continue
		}
		if m := events.MessageOf(&s.Item, calls[s.ID], 0); m != nil {
			out = append(out, *m)
		}
	}
	return out
}
