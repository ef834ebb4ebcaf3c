package state_test

import (
	"io"
	"sync"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// values returns the stored state of a thread.
func (s *site) values(id string) string {
	s.t.Helper()
	v := must(client.Read[events.StateValues](s.t.Context(), s.client, events.GetState{ThreadID: id}))(s.t)
	return string(v.Values)
}
