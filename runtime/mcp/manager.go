package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Manager manages the sessions with MCP servers. It is safe for concurrent use.
type Manager struct {
	options Options
	links   map[string]*link
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // starting, watching and ending sessions

	mu      sync.Mutex // number of sessions, including those that start or end
	open    int        // sessions, those that start and end too
	changed chan struct{}
	closed  bool
}

// link is the state of one server.
type link struct {
	def       Server
	way       *http.Transport // to a server on HTTP
	session   *session        // nil: none
	attempt   *attempt        // to start one; nil: none
	failures  int             // since it last answered
	why       error           // the last of them
	notBefore time.Time
}

// attempt is the start of a session.
type attempt struct {
	done chan struct{}
	err  error
}

// New returns a Manager for these servers; it starts none yet. The error is an
// *events.Error that names the invalid definition.
func New(options Options, servers ...Server) (*Manager, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	m := &Manager{options: options.withDefaults(), links: map[string]*link{}, changed: make(chan struct{})}
	for _, def := range servers {
		if err := def.Validate(); err != nil {
			return nil, err
		}
		if _, ok := m.links[def.Name]; ok {
			return nil, events.Taken("MCP server", def.Name)
		}
		m.links[def.Name] = &link{def: def, way: m.options.Egress.Transport()}
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

// Servers returns the names of the servers, sorted.
func (m *Manager) Servers() []string { return slices.Sorted(maps.Keys(m.links)) }

var errClosed = errors.New("this process is ending")

// Close ends all sessions and waits for that, a few seconds at most. Calls in flight
// end with an error. It may be called more than once.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	for _, l := range m.links {
		if l.session != nil {
			m.end(l.session, errClosed)
		}
	}
	m.signal()
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
	for _, l := range m.links {
		l.way.CloseIdleConnections()
	}
}

// signal wakes waiting goroutines; the caller holds the lock.
func (m *Manager) signal() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// acquire returns the session with a server, for release. It starts one if there is
// none, once the server's backoff is over and the limit of sessions permits. The error
// is that of the start, or ctx's.
func (m *Manager) acquire(ctx context.Context, l *link) (*session, error) {
	for {
		m.mu.Lock()
		var wait <-chan struct{}
		var until *time.Timer
		var starting *attempt
		switch now := time.Now(); {
		case m.closed:
			m.mu.Unlock()
			return nil, errClosed
		case l.session != nil:
			s := l.session
			s.users++
			s.idle.Stop()
			m.mu.Unlock()
			return s, nil
		case l.attempt != nil:
			starting, wait = l.attempt, l.attempt.done
		case now.Before(l.notBefore):
			wait, until = m.changed, time.NewTimer(l.notBefore.Sub(now))
		case m.open >= m.options.MaxSessions:
			m.makeRoom()
			wait = m.changed
		default:
			done, err := m.options.Admit()
			if err != nil {
				m.mu.Unlock()
				return nil, &startError{text: err.Error(), down: true}
			}
			starting = m.start(l, done)
			wait = starting.done
		}
		m.mu.Unlock()
		if err := pause(ctx, wait, until); err != nil {
			return nil, fmt.Errorf("no session with it in time: %w", err)
		}
		if starting != nil && starting.err != nil {
			return nil, starting.err
		}
	}
}

// pause waits for a change, a time or the end of ctx.
func pause(ctx context.Context, changed <-chan struct{}, until *time.Timer) error {
	var at <-chan time.Time
	if until != nil {
		defer until.Stop()
		at = until.C
	}
	select {
	case <-changed:
	case <-at:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// makeRoom ends the session that is idle for longest, if one is idle; the caller holds
// the lock.
func (m *Manager) makeRoom() {
	var oldest *session
	for _, l := range m.links {
		if s := l.session; s != nil && s.users == 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest != nil {
		m.end(oldest, errors.New("its place was needed"))
	}
}

// start starts a session, and calls done when it has started or failed; the caller holds the lock.
func (m *Manager) start(l *link, done func()) *attempt {
	a := &attempt{done: make(chan struct{})}
	l.attempt = a
	m.open++
	m.running.Go(func() {
		s, err := connect(m.ctx, l, m.options)
		done()
		m.mu.Lock()
		l.attempt, a.err = nil, err
		if err != nil {
			m.failed(l, err)
		} else {
			l.session = s
			s.used = time.Now()
			s.idle = time.AfterFunc(m.options.Idle, func() { m.retire(s) })
			m.running.Go(func() { m.watch(s) })
			if m.closed {
				m.end(s, errClosed)
			}
		}
		close(a.done)
		m.mu.Unlock()
		if err != nil {
			s.stop()
			m.gone()
		}
	})
	return a
}

// failing returns why no session with a server can start before ctx ends: it failed, and its
// backoff lasts longer. It returns nil if one may start.
func (m *Manager) failing(ctx context.Context, l *link) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if end, limited := ctx.Deadline(); limited && l.session == nil && end.Before(l.notBefore) {
		return l.why
	}
	return nil
}

// failed delays the next start of a server; the caller holds the lock.
func (m *Manager) failed(l *link, why error) {
	l.failures++
	l.why = why
	l.notBefore = time.Now().Add(retry.Policy{First: m.options.Backoff, Max: maxBackoff}.Delay(l.failures))
}

// watch waits for the end of a session.
func (m *Manager) watch(s *session) {
	_ = s.client.Wait() // the layers below know the cause better
	m.drop(s, errBroken)
}

// drop ends a session that is no longer usable.
func (m *Manager) drop(s *session, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !s.ending && errors.Is(why, errBroken) {
		m.failed(s.link, why)
	}
	m.end(s, why)
}

// end ends a session, once; the caller holds the lock. Its place is free when it has
// ended.
func (m *Manager) end(s *session, why error) {
	if s.ending {
		return
	}
	s.ending = true
	s.idle.Stop()
	if s.link.session == s {
		s.link.session = nil
	}
	s.over(why)
	m.running.Go(func() {
		s.stop()
		m.gone()
	})
}

// gone frees the place of a session.
func (m *Manager) gone() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	m.signal()
}

// retire ends a session that has been idle for a while.
func (m *Manager) retire(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed && s.users == 0 && time.Since(s.used) >= m.options.Idle {
		m.end(s, errors.New("it was idle"))
	}
}

// release returns a session. answered reports that the server answered: it is healthy.
func (m *Manager) release(s *session, answered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answered {
		s.link.failures, s.link.why, s.link.notBefore = 0, nil, time.Time{}
	}
	s.users--
	s.used = time.Now()
	if s.users == 0 && !s.ending {
		s.idle.Reset(m.options.Idle)
		m.signal()
	}
}
