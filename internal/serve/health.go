package serve

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// handler serves health and metrics.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, health{OK: true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := s.Ready(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable, health{Reason: err.Error()})
			return
		}
		answer(w, http.StatusOK, health{OK: true})
	})
	mux.Handle("GET /metrics", s.metrics.Handler())
	return mux
}

type health struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitzero"`
}

func answer(w http.ResponseWriter, status int, h health) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, h) // whoever asked may have gone
}
