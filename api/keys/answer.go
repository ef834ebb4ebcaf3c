package keys

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// request is a gateway's request to the process that has the keys.
type request struct {
	IDs  []string             `json:"ids,omitempty"`  // of the keys that it wants
	Used map[string]time.Time `json:"used,omitempty"` // when keys were last used there

	// Known is the revision that it has: the reply is sent when there is another one, so that a
	// gateway learns of a revoked key at once. Empty, or if none comes soon: without waiting.
	Known string `json:"known,omitzero"`
}

// reply has those of the keys that may be used, and the revision of all: keys have changed if
// it has.
type reply struct {
	Revision string `json:"revision"`
	Keys     []Key  `json:"keys,omitempty"`
}

const (
	mostAsked   = 1000 // keys that a request names
	mostWaiting = 1000 // requests that wait for a change; further ones are answered at once
)

// Answer answers gateways that ask for keys: each gets those that it names, and no list. It
// ends with the connection.
func (s *Store) Answer(nc *nats.Conn, n events.Names) error {
	all := n.GatewayKeys("")
	for _, subject := range []string{all, n.GatewayKeys("*")} {
		_, err := nc.QueueSubscribe(subject, events.WorkerQueue, func(m *nats.Msg) {
			tenant, _ := strings.CutPrefix(strings.TrimPrefix(m.Subject, all), ".")
			var asked request
			if !n.Answerable(m.Reply) || json.Unmarshal(m.Data, &asked) != nil || len(asked.IDs) > mostAsked {
				return
			}
			s.wait(asked.Known, func() {
				body, err := json.Marshal(s.answer(tenant, asked, time.Now()))
				if err == nil {
					_ = m.Respond(body) // the gateway asks again
				}
			})
		})
		if err != nil {
			return err
		}
	}
	return nc.Flush() // from here on, no request is lost
}

// wait calls answer when the revision is another than the known one, or after the time that a
// request is held: at once, without a known one.
func (s *Store) wait(known string, answer func()) {
	if known == "" || !s.hold(known, answer) {
		answer()
	}
}

// hold calls answer later, unless there is another revision, too much waits already, or the store
// closes: then it returns false.
func (s *Store) hold(known string, answer func()) bool {
	s.reading.Lock()
	defer s.reading.Unlock()
	if known != s.revision || s.closing.Err() != nil {
		return false
	}
	select {
	case s.waiting <- struct{}{}:
	default:
		return false
	}
	changed := s.changed
	s.done.Go(func() {
		defer func() { <-s.waiting }()
		held := time.NewTimer(s.times.hold)
		defer held.Stop()
		select {
		case <-changed:
		case <-held.C:
		case <-s.closing.Done():
		}
		answer()
	})
	return true
}

// answer returns keys of a tenant, or of all if it is empty.
func (s *Store) answer(tenant string, asked request, now time.Time) reply {
	s.reading.Lock()
	out := reply{Revision: s.revision}
	s.reading.Unlock()
	for _, id := range asked.IDs {
		if k, ok := s.find(id, now); ok && (tenant == "" || tenant == k.Tenant) {
			out.Keys = append(out.Keys, k.Key)
		}
	}
	for id, at := range asked.Used {
		if k, ok := s.find(id, now); ok && (tenant == "" || tenant == k.Tenant) && !at.After(now) {
			s.note(id, at)
		}
	}
	slices.SortFunc(out.Keys, func(a, b Key) int { return strings.Compare(a.ID, b.ID) })
	return out
}
