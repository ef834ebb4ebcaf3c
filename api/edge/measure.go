package edge

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"time"
)

// Metrics is told of requests. Its methods must return at once.
type Metrics interface {
	// Answered is told of a request when its answer begins: the surface that it was for, the
	// status, and how long that took.
	Answered(surface string, status int, seconds float64)
	// OpenStreams is told how many streams and sockets are open.
	OpenStreams(n int)
	// Limited is told of a request over a limit: rate, inflight, streams or uploads.
	Limited(service, limit string)
}

// noMetrics implements Metrics and does nothing.
type noMetrics struct{}

func (noMetrics) Answered(string, int, float64) {}
func (noMetrics) OpenStreams(int)               {}
func (noMetrics) Limited(string, string)        {}

// measured tells the metrics when an answer begins.
type measured struct {
	http.ResponseWriter
	metrics Metrics
	surface string
	arrived time.Time
	status  int // that it began with; 0: it has not begun
}

// surfaceOf returns the surface that a path is of, one of a few.
func surfaceOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "api", "v1", "chat", "threads", "console", "agui", "a2a", "mcp":
		return first
	case "healthz", "readyz", "metrics":
		return "ops"
	}
	return "other"
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *measured) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *measured) begin(status int) {
	if w.status != 0 || status < http.StatusOK && status != http.StatusSwitchingProtocols {
		return
	}
	w.status = status
	w.metrics.Answered(w.surface, status, time.Since(w.arrived).Seconds())
}

func (w *measured) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *measured) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Hijack takes over the connection, for a WebSocket.
func (w *measured) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.begin(http.StatusSwitchingProtocols)
	}
	return conn, buffers, err
}
