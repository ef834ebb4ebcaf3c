package skein_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
)

// Within Setup the server has not started: what needs it says so.
func TestSetup_ServerHasNotStarted(t *testing.T) {
	t.Parallel()
	var early http.Handler
	answer := func() int {
		w := httptest.NewRecorder()
		early.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return w.Code
	}
	s, err := skein.Start(t.Context(), skein.Options{Store: t.TempDir(), NATSListen: skein.None, HTTPListen: skein.None, Volatile: true, Setup: func(s *skein.Server) error {
		_, ofClient := s.Client("acme")
		_, ofEffects := s.FireDue(t.Context())
		for name, err := range map[string]error{
			"Client": ofClient, "FireDue": ofEffects, "WaitIdle": s.WaitIdle(t.Context()), "Reload": s.Reload(), "Stop": s.Stop(t.Context()),
		} {
			if !errors.Is(err, &events.Error{Code: events.Unavailable}) || !strings.Contains(err.Error(), "has not started") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s.Addresses() != (skein.Addresses{}) {
			t.Errorf("the addresses are %+v", s.Addresses())
		}
		early = s.Handler()
		if code := answer(); code != http.StatusServiceUnavailable {
			t.Errorf("the handler answers %d", code)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if code := answer(); code != http.StatusOK {
		t.Errorf("once it has started the handler answers %d", code)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A Setup that panics leaves nothing running: its store can be opened again.
func TestSetup_Panics(t *testing.T) {
	t.Parallel()
	o := skein.Options{Store: t.TempDir(), NATSListen: skein.None, HTTPListen: skein.None, Volatile: true, Setup: func(*skein.Server) error { panic("no such table") }}
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "no such table") || !strings.Contains(err.Error(), "setup_test.go") {
				t.Errorf("it panicked with %v", err)
			}
		}()
		_, err := skein.Start(t.Context(), o)
		t.Errorf("Start returned %v", err)
	}()
	o.Setup = nil
	s, err := skein.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
