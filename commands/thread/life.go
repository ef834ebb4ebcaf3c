package thread

import (
	"slices"
	"time"

	"github.com/skein-threads/skein/events"
)

// lifeState is a life of the thread's key-value state. It is the current life if Context is set,
// otherwise the last one.
type lifeState struct {
	N         int64       `json:"n"`
	Context   string      `json:"context,omitzero"`
	Idle      int64       `json:"idle,omitzero"`       // seconds
	Until     events.Time `json:"until,omitzero"`      // it ends then, or a little later, without further activity
	Listeners []string    `json:"listeners,omitempty"` // never changed in place
}

// endedLife is a life that has ended, with values that are not cleared yet.
type endedLife struct {
	N         int64       `json:"n"`
	Context   string      `json:"context"`
	At        events.Time `json:"at"`
	Reason    string      `json:"reason"`
	Listeners []string    `json:"listeners"` // that have not released it; never changed in place
}

func (l lifeState) open() bool { return l.Context != "" }

// idle returns the idle time of the life.
func (l lifeState) idle() time.Duration { return time.Duration(l.Idle) * time.Second }

// due returns when the life ends. Not every renewal is recorded, so the end is later than Until by
// as much as an unrecorded renewal may add.
func (l lifeState) due() events.Time {
	return l.Until + events.Time((2 * events.RenewEvery(l.idle())).Microseconds())
}

// due returns when the wait for listeners ends.
func (l endedLife) due() events.Time {
	return l.At + events.Time(events.ListenerPatience.Microseconds())
}

// LifeDue returns when a life ends or, once it has ended, when the wait for its listeners ends. It
// reports false if the life does not exist or was cleared.
func (s *State) LifeDue(life int64) (events.Time, bool) {
	if s.Life.open() && s.Life.N == life {
		return s.Life.due(), true
	}
	if l, ok := s.ended(life); ok {
		return l.due(), true
	}
	return 0, false
}

// ended returns a life that has ended and is not cleared yet.
func (s *State) ended(life int64) (endedLife, bool) {
	for _, l := range s.Ended {
		if l.N == life {
			return l, true
		}
	}
	return endedLife{}, false
}

// renew postpones the end of the life with that context after a change of its values.
func (s *State) renew(context string, at events.Time) {
	if l := &s.Life; l.open() && l.Context == context && l.Idle > 0 {
		l.Until = max(l.Until, at+events.Time(l.idle().Microseconds()))
	}
}

// evolveLife applies an event of a life.
func (s *State) evolveLife(e *events.Event) {
	switch d := e.Data.(type) {
	case events.StateRenewed:
		if s.Life.N == d.Life {
			s.Life.Until, s.Life.Idle, s.Life.Listeners = timeOf(d.Until), d.IdleSeconds, d.Listeners
		}
	case events.LifecycleDestroyed:
		if s.Life.open() && s.Life.N == d.Life {
			s.Ended = append(slices.Clone(s.Ended), endedLife{N: d.Life, Context: s.Life.Context, At: e.Time, Reason: d.Reason, Listeners: d.Listeners})
			s.Life = lifeState{N: d.Life}
		}
	case events.StateReleased:
		ended := slices.Clone(s.Ended)
		for i, l := range ended {
			if l.N == d.Life {
				ended[i].Listeners = slices.DeleteFunc(slices.Clone(l.Listeners), func(name string) bool { return name == d.Listener })
			}
		}
		s.Ended = ended
	case events.StateClosed:
		if c, ok := s.context(e.Subject); ok {
			c.Content = nil
			s.setContext(e.Subject, c)
		}
		s.Ended = slices.DeleteFunc(slices.Clone(s.Ended), func(l endedLife) bool { return l.N == d.Life })
	}
}

// Values returns the key-value state of a life at the time now, without Keys. Life 0 means the
// current one. A life that is due counts as ended, even if no event has ended it yet. The error is
// a not_found if there is no such life, or it was cleared.
func (s *State) Values(life int64, now events.Time) (*events.StateValues, error) {
	v := &events.StateValues{Values: events.JSON("{}"), Version: s.Version, Seq: int64(s.Seq)}
	context := ""
	l := s.Life
	switch {
	case l.open() && (life == l.N || life == 0 && now < l.due()):
		context = l.Context
		v.Life, v.Loaded, v.ExpiresAt, v.Ended, v.Listeners = l.N, true, l.Until.ISO(), now >= l.due(), l.Listeners
		if v.Ended {
			v.ExpiresAt = ""
		}
	case life == 0:
		return v, nil
	default:
		ended, ok := s.ended(life)
		if !ok {
			return nil, events.Missing("life of the state", events.LifeKey(life))
		}
		context = ended.Context
		v.Life, v.Loaded, v.Ended, v.Listeners = ended.N, true, true, ended.Listeners
	}
	v.ContextID = context
	if c, _ := s.context(context); c.Content != nil {
		v.Values = slices.Clone(c.Content)
	}
	return v, nil
}
