package thread

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Reasons why a life ended.
const (
	expired   = "expired"
	destroyed = "destroyed"
)

// maxListeners bounds the applications that listen to the end of a life.
const maxListeners = 16

// ExpireState ends a life that is due, or stops waiting for the listeners of an ended life.
// Otherwise it changes nothing. Clients cannot send it.
type ExpireState struct{ Life int64 }

func (m *decider) mergeState(d events.MergeState) error {
	if !m.state.Exists() {
		if !d.Create || m.state.Existed() { // a deleted thread stays deleted
			return events.Missing("thread", m.command.ThreadID)
		}
		if err := m.createThread(events.CreateThread{UserID: d.UserID}); err != nil {
			return err
		}
	}
	m.endIfDue()
	operations, err := plain(d.Operations)
	if err != nil {
		return err
	}
	var before []byte
	if l := m.state.Life; l.open() {
		c, _ := m.state.context(l.Context)
		before = c.Content
	}
	after, size, err := events.ApplyOperations(before, operations)
	if err != nil {
		return err
	}
	if len(after) > events.MaxStateBytes {
		return events.TooLarge("the thread's state", int64(len(after)), events.MaxStateBytes)
	}
	if err := m.openLife(d); err != nil {
		return err
	}
	if err := m.beginSession(d.Session); err != nil {
		return err
	}
	l := m.state.Life
	m.emit(events.StateChangedType, l.Context, "", events.StateChanged{
		Operations: operations, Life: l.N, Size: size, Bytes: int64(len(after)),
	})
	m.endSession(d.Session)
	return nil
}

// openLife opens a life of the state if none is open, and records the idle time and the listeners
// that the merge sets.
func (m *decider) openLife(d events.MergeState) error {
	l := m.state.Life
	listeners := slices.Clone(l.Listeners)
	for _, name := range d.Listeners {
		if !slices.Contains(listeners, name) {
			listeners = append(listeners, name)
		}
	}
	idle := cmp.Or(d.IdleSeconds, l.Idle, int64(events.DefaultIdle.Seconds()))
	switch {
	case len(listeners) > maxListeners:
		return events.Invalid("/listeners", "%d applications would listen to the end of the thread's state; at most %d can", len(listeners), maxListeners)
	case !l.open():
		id := m.id("", events.ContextPrefix)
		m.emitContext(id, events.LifeKey(l.N+1), "", nil)
	case idle == l.Idle && len(listeners) == len(l.Listeners):
		return nil
	}
	m.emitRenewed(idle, listeners)
	return nil
}

func (m *decider) emitRenewed(idle int64, listeners []string) {
	l := m.state.Life
	m.emit(events.StateRenewedType, l.Context, "", events.StateRenewed{
		Life: l.N, Until: (m.at + events.Time(idle)*1e6).String(), IdleSeconds: idle, Listeners: listeners,
	})
}

// touchState renews the current life, unless it was renewed a moment ago.
func (m *decider) touchState(events.TouchState) error {
	m.endIfDue()
	l := m.state.Life
	if !l.open() {
		return nil
	}
	until := m.at + events.Time(l.idle().Microseconds())
	if until-l.Until >= events.Time(events.RenewEvery(l.idle()).Microseconds()) {
		m.emitRenewed(l.Idle, l.Listeners)
	}
	return nil
}

func (m *decider) destroyState(d events.DestroyState) error {
	m.endIfDue()
	if m.state.Life.open() {
		m.endLife(cmp.Or(d.Reason, destroyed))
	}
	return nil
}

// endIfDue ends the current life if its time is over and nobody has ended it yet.
func (m *decider) endIfDue() {
	if l := m.state.Life; l.open() && m.at >= l.due() {
		m.endLife(expired)
	}
}

// endLife ends the current life, and clears its values if it has no listeners.
func (m *decider) endLife(reason string) {
	l := m.state.Life
	m.emit(events.LifecycleDestroyedType, m.command.ThreadID, "", events.LifecycleDestroyed{
		Reason: reason, Life: l.N, ContextID: l.Context, Listeners: l.Listeners,
	})
	m.emit(events.ContextStatusChangedType, l.Context, "", events.ContextStatusChanged{From: events.ContextOpen, To: events.ContextClosed})
	m.clearLife(l.N)
}

// clearLife clears the values of an ended life, unless a listener has still to release it.
func (m *decider) clearLife(life int64) {
	if l, ok := m.state.ended(life); ok && len(l.Listeners) == 0 {
		m.emit(events.StateClosedType, l.Context, "", events.StateClosed{Reason: l.Reason, Life: l.N})
	}
}

func (m *decider) releaseState(d events.ReleaseState) error {
	l, ok := m.state.ended(d.Life)
	switch {
	case !ok && m.state.Life.open() && d.Life == m.state.Life.N:
		return events.Invalid("/life", "life %d of the state has not ended; use state.destroy to end it", d.Life)
	case !ok && d.Life > m.state.Life.N:
		return events.Missing("life of the state", events.LifeKey(d.Life))
	case !slices.Contains(l.Listeners, d.Listener):
		return nil // it is released already
	}
	m.emit(events.StateReleasedType, l.Context, "", events.StateReleased{Life: l.N, Listener: d.Listener, ErrorText: d.ErrorText})
	m.clearLife(l.N)
	return nil
}

func (m *decider) expireState(d ExpireState) error {
	if m.state.Life.N == d.Life {
		m.endIfDue()
	}
	l, ok := m.state.ended(d.Life)
	if !ok || m.at < l.due() {
		return nil
	}
	for _, name := range l.Listeners {
		m.emit(events.StateReleasedType, l.Context, "", events.StateReleased{
			Life: l.N, Listener: name, ErrorText: "no process of the application released the state within " + events.ListenerPatience.String(),
		})
	}
	m.clearLife(l.N)
	return nil
}

// plain returns the operations with white space removed from their values. It refuses numbers that
// a float64 cannot represent.
func plain(operations []events.StateOperation) ([]events.StateOperation, error) {
	out := slices.Clone(operations)
	for i, o := range out {
		if o.Value == nil {
			continue
		}
		value := jsontext.Value(slices.Clone(o.Value))
		err := value.Compact()
		if err == nil {
			err = finite(value)
		}
		if err != nil {
			return nil, events.Invalid("/operations/"+strconv.Itoa(i)+"/value", "the value of key %.80q: %w", o.Key, err)
		}
		out[i].Value = events.JSON(value)
	}
	return out, nil
}

// finite refuses a value with a number that overflows a float64.
func finite(value jsontext.Value) error {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if token.Kind() != '0' {
			continue
		}
		number := token.String()
		if _, err := strconv.ParseFloat(number, 64); err != nil {
			return fmt.Errorf("%.40s is too large for a number; use a string", number)
		}
	}
}

// checkKey refuses the keys of the contexts that hold lives of the state.
func checkKey(key string) error {
	if _, ok := events.ParseLifeKey(key); ok {
		return events.Invalid("/key", "the key %s belongs to the thread's key-value state; use state.merge", key)
	}
	return nil
}

// notALife refuses a context that holds a life of the state.
func notALife(id string, c contextState) error {
	if _, ok := events.ParseLifeKey(c.Key); ok {
		return events.Invalid("/contextId", "context %s is a life of the thread's key-value state; use state.merge to change it, and another context for all else", id)
	}
	return nil
}
