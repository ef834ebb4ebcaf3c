package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/events"
)

// Handler serves everything over HTTP: health, metrics and the API.
func (s *Server) Handler() http.Handler {
	if s.api == nil { // it has not started
		return s.ops()
	}
	return s.api
}

// openAPI opens the API over HTTP, for requests that the rest of the server answers.
func (s *Server) openAPI(background context.Context) error {
	nc, err := s.connect("http")
	if err != nil {
		return err
	}
	auth, err := s.openAuth(nc)
	if err != nil {
		return err
	}
	if err := s.emitForGateways(nc); err != nil {
		return err
	}
	var serves []string
	if s.cfg.Tenant != "" {
		serves = []string{s.cfg.Tenant}
	}
	s.api, err = api.New(api.Options{Serves: serves, Conn: nc, Service: localService{s}, Names: s.cfg.Names, Auth: auth, Ops: s.ops(), Activity: s.activity, Bodies: s.places(placesBodies, 0), Metrics: s.metrics, Listen: s.cfg.listen(), OpenOps: s.cfg.HTTPListen == NoListen || loopback(s.cfg.HTTPListen), Endpoints: s.cfg.Endpoints, System: s.openOverview(background), Operations: s.operations, Operators: s.cfg.Operators, Prices: s.cfg.Prices, A2AAgent: s.cfg.A2AAgent})
	return err
}

// emitForGateways emits the live events of gateways in the account of Skein, where everyone's
// subscriptions are.
func (s *Server) emitForGateways(nc *nats.Conn) error {
	emit, live := s.cfg.Names.Prefix+".emit.", s.cfg.Names.Prefix+".live."
	_, err := nc.QueueSubscribe(s.cfg.Names.Emit("*", "*", "*"), events.WorkerQueue, func(m *nats.Msg) {
		_ = nc.Publish(live+strings.TrimPrefix(m.Subject, emit), m.Data) // nobody waits for it
	})
	if err != nil {
		return err
	}
	return nc.Flush()
}

// openAuth returns who may use the API.
func (s *Server) openAuth(nc *nats.Conn) (edge.Authenticator, error) {
	folder, byToken := s.cfg.keysFolder(), s.cfg.listen().TokenAuthenticator(nil, s.logger)
	if folder == "" && byToken == nil {
		return edge.Desk{Tenant: s.cfg.Tenant, Credentials: s.cfg.Creds != ""}, nil
	}
	auth := api.Authenticator{Tokens: byToken}
	if folder == "" {
		return auth, nil
	}
	var err error
	s.keys, err = keys.Open(folder, func(err error) { s.logger.Warn().Err(err).Msg("the API keys cannot be followed") })
	if err != nil {
		return nil, err
	}
	auth.Keys = s.keys
	return auth, s.keys.Answer(nc, s.cfg.Names)
}

// ops serves health and metrics.
func (s *Server) ops() http.Handler {
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
