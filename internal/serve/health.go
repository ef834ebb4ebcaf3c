package serve

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// Handler serves health and metrics.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, health{OK: true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		h, status := health{OK: true, Checks: s.Checks(r.Context())}, http.StatusOK
		for _, c := range h.Checks {
			if !c.OK {
				h.OK, h.Reason, status = false, c.Name+": "+c.Reason, http.StatusServiceUnavailable
				break
			}
		}
		answer(w, status, h)
	})
	mux.Handle("GET /metrics", s.metrics.Handler())
	return mux
}

type health struct {
	OK     bool    `json:"ok"`
	Reason string  `json:"reason,omitzero"` // of the first check that failed
	Checks []Check `json:"checks,omitempty"`
}

func answer(w http.ResponseWriter, status int, h health) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, h) // the client may have gone
}
