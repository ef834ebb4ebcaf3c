package state

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/skein-threads/skein/events"
)

// EventType names an event that listeners listen to.
type EventType string

// The events.
const (
	ThreadCreated    EventType = "created"           // a thread was created
	ThreadDestroyed  EventType = "destroyed"         // a life of a thread's state has ended; its values can still be read
	SessionStarted   EventType = "session.started"   // a session that writes has started
	SessionCompleted EventType = "session.completed" // a session that writes has completed
)

// Listener is a function that runs after an event, in any process of the application that runs
// App.Listen: at least once, and again after a failure. After five failures the last error is
// recorded on the thread (of a state that has ended) or logged, and the listener is not run again.
type Listener struct {
	Name  string // unique in the application: 1 to 64 letters, digits, - and _
	Event EventType
	// OnRequest restricts a ThreadDestroyed listener to the threads for which a request calls
	// ThreadScope.AddEventListener with its name. Otherwise it runs for each state that the
	// application writes. Listeners of other events run for all threads of the tenant.
	OnRequest bool
	// Timeout is how long a run may take; 5 minutes if 0. Then its context ends. A Run that
	// ignores its context holds back all later events of the listener until its process ends.
	Timeout time.Duration
	// Run does the work. Its context is like that of a request: Thread, KV, Logger and WaitUntil
	// work with it. What it writes to the thread is saved if it returns nil.
	Run func(ctx context.Context, e Event) error
}

// Event is what has happened.
type Event struct {
	Type   EventType
	Key    string       // the same each time that the listener runs for the same event: an idempotency key
	Thread *ThreadScope // after ThreadDestroyed, its values can be read and not changed
	Reason string       // of ThreadDestroyed: expired, destroyed, or the reason given to state.destroy

	SessionID string                // of a session's event
	Outcome   events.SessionOutcome // of SessionCompleted
	ErrorText string                // of a session that failed
}

var listenerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func (l Listener) timeout() time.Duration { return cmp.Or(l.Timeout, 5*time.Minute) }

// maxListeners bounds the listeners to the end of one state, of all applications.
const maxListeners = 16

// checkListeners reports what is wrong with the listeners and the name of the application.
func (o *Options) checkListeners() error {
	if len(o.Listeners) > 0 && !listenerName.MatchString(o.Name) {
		return events.Invalid("/name", "the application %.80q cannot listen; give it a name of 1 to 64 letters, digits, - and _", o.Name)
	}
	seen, ends := map[string]bool{}, 0
	for _, l := range o.Listeners {
		switch {
		case !listenerName.MatchString(l.Name):
			return events.Invalid("/listeners", "the name of a listener is %.80q; use 1 to 64 letters, digits, - and _", l.Name)
		case seen[l.Name]:
			return events.Invalid("/listeners", "two listeners have the name %s", l.Name)
		case !slices.Contains([]EventType{ThreadCreated, ThreadDestroyed, SessionStarted, SessionCompleted}, l.Event):
			return events.Invalid("/listeners", "listener %s: there is no event %.80q", l.Name, l.Event)
		case l.Timeout < 0:
			return events.Invalid("/listeners", "listener %s: its timeout is %v; use a positive one, or 0 for 5 minutes", l.Name, l.Timeout)
		case l.Run == nil:
			return events.Invalid("/listeners", "listener %s has no function", l.Name)
		case l.OnRequest && l.Event != ThreadDestroyed:
			return events.Invalid("/listeners", "listener %s: only those of %s can be registered by a request", l.Name, ThreadDestroyed)
		}
		seen[l.Name] = true
		if l.Event == ThreadDestroyed {
			ends++
		}
	}
	if ends > maxListeners {
		return events.Invalid("/listeners", "%d listeners to %s are more than the %d that a state can have", ends, ThreadDestroyed, maxListeners)
	}
	return nil
}

// inLog returns the name of a listener as the log has it.
func (o *Options) inLog(name string) string { return o.Name + "/" + name }

// everywhere returns the log names of the listeners that are registered on every state.
func (o *Options) everywhere() []string {
	var names []string
	for _, l := range o.Listeners {
		if l.Event == ThreadDestroyed && !l.OnRequest {
			names = append(names, o.inLog(l.Name))
		}
	}
	return names
}

// AddEventListener registers a listener of Options.Listeners for the end of the thread's state. It
// is saved with the request's writes. Registered by many requests, the listener runs once for each
// life of the state. Only a name can be registered, not a function, because another process may
// run the listener.
func (t *ThreadScope) AddEventListener(ctx context.Context, event EventType, name string) error {
	if event != ThreadDestroyed {
		return events.Invalid("", "a thread has no event %.80q to listen to; use %s", event, ThreadDestroyed)
	}
	if !slices.ContainsFunc(t.app.opts.Listeners, func(l Listener) bool { return l.Name == name && l.Event == event }) {
		return events.Invalid("", "the application has no listener %.80q of %s; add it to Options.Listeners", name, event)
	}
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	switch full := t.app.opts.inLog(name); {
	case t.ended:
		return &EndedError{SessionID: t.session}
	case t.life != 0:
		return events.Errorf(events.IllegalTransition, "life %d of the state of thread %s has ended; nothing can listen to its end", t.life, t.ID)
	case !slices.Contains(t.listeners, full):
		t.listeners, t.newListeners = append(t.listeners, full), true
	}
	return nil
}

// AddEventListener registers a function that runs in this process when the session has
// completed: after the response and the background work, and before its State is cleared. The
// only event is "completed". An error or a panic is logged and recorded as that of WaitUntil is.
func (s *SessionScope) AddEventListener(event string, f func(ctx context.Context, event string, s *SessionScope) error) error {
	if event != "completed" {
		return events.Invalid("", "a session has no event %.80q to listen to; use completed", event)
	}
	if f == nil {
		return events.Invalid("", "a listener to the end of session %s has no function", s.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return &EndedError{SessionID: s.ID}
	}
	s.listeners = append(s.listeners, f)
	return nil
}

// listening returns the listeners to the end of the session. After the call none can be added.
func (s *SessionScope) listening() []func(context.Context, string, *SessionScope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.listeners
}

// dropListeners removes the listeners after they have run.
func (s *SessionScope) dropListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = nil
}

func (s *SessionScope) hasListeners() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listeners) > 0
}
