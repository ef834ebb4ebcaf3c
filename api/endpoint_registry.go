package api

import (
	"net/http"
	"sync"

	"github.com/skein-threads/skein/events"
)

// Endpoints holds the endpoints of a process by name. It is safe for concurrent use: endpoints
// may be added while requests are served.
type Endpoints struct {
	mu       sync.RWMutex // guards handlers
	handlers map[string]http.Handler
}

// NewEndpoints returns the endpoints of every server: summary, messages, export
// and files.
func NewEndpoints() *Endpoints { return &Endpoints{handlers: builtIn()} }

// Add registers an endpoint, usually one of Define. The error is an invalid_request for a bad
// name, and already_exists if the name is in use.
func (g *Endpoints) Add(name string, h http.Handler) error {
	if err := checkName(name); err != nil {
		return err
	}
	if f, defined := h.(endpointHandler); h == nil || defined && f == nil {
		return events.Invalid("/handler", "the endpoint %s has no handler", name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.handlers[name]; taken {
		return events.Taken("thread endpoint", name)
	}
	g.handlers[name] = h
	return nil
}

// lookUp returns the endpoint with that name, nil if there is none.
func (g *Endpoints) lookUp(name string) http.Handler {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.handlers[name]
}
