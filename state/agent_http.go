package state

import (
	"errors"
	"io"
	"net/http"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// ServeHTTP answers the JSON of the body of a POST with the JSON of the output. An empty body is
// {}. Other methods are answered with 405: links could send them. An input that does not fit is
// answered with 400. An error of the handler that is an *events.Error is answered with the status of
// its code and its message; any other is logged, recorded on the thread, and answered with 500.
func (a *Agent[In, Out]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isPost(w, r, a.name) {
		return
	}
	in, err := readInput[In](a.input, w, r)
	var raw events.JSON
	if err == nil {
		_, raw, err = a.run(r.Context(), in, a.handler)
	}
	if err != nil {
		answerError(w, r, a.name, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(raw)
}

// ServeHTTP answers the JSON of the body of a POST with the text, part by part. Errors before the
// first part are answered as Agent.ServeHTTP does. After an error behind the first part, the
// response is cut off, so that the client does not mistake it for a complete one, and the
// handler's unsaved writes are dropped.
func (s *StreamAgent[In]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isPost(w, r, s.agent.name) {
		return
	}
	ctx := r.Context()
	in, err := readInput[In](s.agent.input, w, r)
	begun := false
	if err == nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		err = s.send(ctx, in, func(part string) bool {
			if part == "" {
				return true
			}
			begun = true
			if _, err := io.WriteString(w, part); err != nil {
				return false
			}
			err := http.NewResponseController(w).Flush()
			return err == nil || errors.Is(err, http.ErrNotSupported)
		})
	}
	switch {
	case err == nil || errors.Is(err, errStopped):
	case !begun:
		answerError(w, r, s.agent.name, err)
	default:
		scopeOf(ctx).fail(ctx, "agent "+s.agent.name+" failed", err)
		panic(http.ErrAbortHandler)
	}
}

// isPost reports whether a request is a POST, and answers it if not.
func isPost(w http.ResponseWriter, r *http.Request, agent string) bool {
	if r.Method == http.MethodPost {
		return true
	}
	w.Header().Set("Allow", http.MethodPost)
	writeError(w, http.StatusMethodNotAllowed, events.Invalid("", "agent %s takes its input by POST, and not by %.20s", agent, r.Method))
	return false
}

// readInput returns the input in a request's body.
func readInput[In any](s *shape, w http.ResponseWriter, r *http.Request) (in In, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, arguments.MaxArguments))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return in, events.Errorf(events.PayloadTooLarge, "the %s is larger than the %d bytes that it may have", s.what, large.Limit)
	case err != nil:
		return in, events.Invalid("", "read the %s: %w", s.what, err)
	case len(body) == 0:
		body = []byte("{}")
	}
	return decode[In](s, body)
}

// answerError answers a request after its agent has failed.
func answerError(w http.ResponseWriter, r *http.Request, agent string, err error) {
	status, e := http.StatusInternalServerError, events.Errorf(events.Unavailable, "agent %s failed", agent)
	var refusal *events.Error
	if errors.As(err, &refusal) {
		status, e = refusal.Code.Status(), refusal
	}
	if status >= http.StatusInternalServerError {
		scopeOf(r.Context()).fail(r.Context(), "agent "+agent+" failed", err)
	}
	writeError(w, status, e)
}
