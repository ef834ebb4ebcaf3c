package server

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// health is the answer of /healthz and /readyz.
type gatewayHealth struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitzero"`
}

// ops serves health and metrics.
func (g *Gateway) ops() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerGateway(w, gatewayHealth{OK: true}) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answerGateway(w, g.ready()) })
	mux.Handle("GET /metrics", g.metrics.Handler())
	return mux
}

// ready reports whether the gateway can serve requests now.
func (g *Gateway) ready() gatewayHealth {
	switch {
	case g.nc.Status() != nats.CONNECTED:
		return gatewayHealth{Reason: "there is no connection to the NATS server"}
	case g.keys != nil && !g.keys.Ready(time.Now()):
		return gatewayHealth{Reason: "nobody answers for API keys; is skein serve running, with --access or --http-keys?"}
	}
	return gatewayHealth{OK: true}
}

func answerGateway(w http.ResponseWriter, h gatewayHealth) {
	w.Header().Set("Content-Type", "application/json")
	if !h.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.MarshalWrite(w, h) // the client may have gone
}
