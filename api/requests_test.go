package api_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/internal/protocoltest"
)

// mostRequests is what a turn that streams may ask of the service: commands and queries. On a slow
// machine a turn asks once or twice more than the 2 to 11 that it needs.
const mostRequests = 13

// What a turn asks of the service is bounded over every protocol: each request costs as much as the
// command that begins the turn.
func TestProtocols_FewRequests(t *testing.T) {
	forEvery(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		var mu sync.Mutex
		var names []string // guarded by mu
		watch := natstest.Dial(t, s.skein.Addresses().NATS)
		for _, subject := range []string{"skein.cmd.>", "skein.query.>"} {
			_, err := watch.Subscribe(subject, func(m *nats.Msg) {
				mu.Lock()
				defer mu.Unlock()
				names = append(names, strings.Join(strings.Split(m.Subject, ".")[3:], "."))
			})
			s.skein.Must(err)
		}
		s.skein.Must(watch.Flush())
		run := s.begin(t, p, id, "hello")
		run.ReadAll()
		s.skein.Must(watch.Flush())
		mu.Lock()
		defer mu.Unlock()
		if slices.Sort(names); len(names) > mostRequests {
			t.Errorf("%d requests, want at most %d: %s", len(names), mostRequests, fmt.Sprint(names))
		}
	})
}

// What a client reads next, over whatever protocol, shows the run whose end a stream has told.
func TestProtocols_ShownAfterTheEnd(t *testing.T) {
	forEvery(t, func(t *testing.T, s *scene, p protocoltest.Protocol, id string) {
		run := s.begin(t, p, id, "hello").ReadAll()
		thread, execution := run.Thread(), run.Execution()
		if thread == "" || execution == "" {
			return // the stream does not name them
		}
		if status, body := s.ask("", "GET", "/api/threads/"+thread+"/executions/"+execution, ""); status != 200 || !strings.Contains(body, `"finished":true`) {
			t.Errorf("%d %s", status, body)
		}
	})
}
