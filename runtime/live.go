package runtime

import (
	"sync"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// live is the part of a turn's state that it shares with the goroutines of tools and hooks, which
// may still run while the turn continues.
type live struct {
	mu      sync.Mutex // guards the fields below; held briefly
	run     thread.Run
	thread  known
	now     bool                   // it must stop without waiting for a model
	discard bool                   // the streamed text is discarded
	spans   []events.TraceRecorded // recorded by the next commit

	talking sync.Mutex // guards talk, while it is changed and read
	talk    *View      // nil when the turn is over
}

// noteState records what the state says of the run.
func (l *live) noteState(execution string) func(*thread.State) {
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

// threadNow returns what the worker knows of the thread.
func (l *live) threadNow() known {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.thread
}

// noteStop records that the run was stopped.
func (l *live) noteStop(d events.RunStopped) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.Stop, l.run.StoppedBy = true, d.By
	l.discard, l.now = l.discard || d.Discard, l.now || d.Now
}

// showConversation sets the conversation for tools and hooks; nil removes it.
func (l *live) showConversation(c *View) {
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
	return l.talk.Messages(context)
}

// maxSpans bounds what calls within a run may record between two commits.
const maxSpans = 1000

// addSpan adds a span for the next commit of the run.
func (l *live) addSpan(r events.TraceRecorded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spans) < maxSpans {
		l.spans = append(l.spans, r)
	}
}

// takeSpans returns and removes the waiting spans, after own.
func (l *live) takeSpans(own ...events.TraceRecorded) []events.TraceRecorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	own = append(own, l.spans...)
	l.spans = nil
	return own
}
