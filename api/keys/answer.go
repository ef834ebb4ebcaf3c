package keys

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// request is what a gateway asks of the process that has the keys.
type request struct {
	IDs  []string             `json:"ids,omitempty"`  // of the keys that it wants
	Used map[string]time.Time `json:"used,omitempty"` // when keys were last used there
}

// reply has those of the keys that may be used, and the revision of all: keys have changed if
// it has.
type reply struct {
	Revision string `json:"revision"`
	Keys     []Key  `json:"keys,omitempty"`
}

// mostAsked is how many keys a request names.
const mostAsked = 1000

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
			body, err := json.Marshal(s.answer(tenant, asked, time.Now()))
			if err == nil {
				_ = m.Respond(body) // the gateway asks again
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
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
