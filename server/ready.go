package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skein-threads/skein/projections/buckets"
)

// checkTimeout limits each check of readiness, so that a cluster without a quorum,
// which never answers, is reported in time.
const checkTimeout = 1500 * time.Millisecond

// Check is the state of one part that Skein needs.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitzero"`
	Note   string `json:"note,omitzero"` // a warning about a part that works
}

// NotReadyError names the parts that do not work.
type NotReadyError struct{ Failed []Check }

func (e *NotReadyError) Error() string {
	text := "not ready"
	for i, c := range e.Failed {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		text += separator + c.Name + ": " + c.Reason
	}
	return text
}

// Ready returns a *NotReadyError if the server cannot work now.
func (s *Server) Ready(ctx context.Context) error {
	var failed []Check
	for _, c := range s.Checks(ctx) {
		if !c.OK {
			failed = append(failed, c)
		}
	}
	if len(failed) > 0 {
		return &NotReadyError{failed}
	}
	return nil
}

// Checks checks every part that Skein needs, each with its own timeout, and returns
// them in a fixed order.
func (s *Server) Checks(ctx context.Context) []Check {
	parts := []struct {
		name  string
		check func(context.Context) error
		note  func(context.Context) string
	}{
		{"process", s.processReady, nil},
		{"connections", s.connectionsReady, nil},
		{"log", s.logReady, nil},
		{"store", s.storeReady, nil},
		{"read models", s.reading.ready, s.notShown},
	}
	out := make([]Check, len(parts))
	var asked sync.WaitGroup
	for i, part := range parts {
		asked.Go(func() {
			one, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			out[i] = Check{Name: part.name, OK: true}
			if err := part.check(one); err != nil {
				out[i].OK, out[i].Reason = false, err.Error()
			} else if part.note != nil {
				out[i].Note = part.note(one)
			}
		})
	}
	asked.Wait()
	return out
}

// notShown describes what the read models omit. It does not make the server unready:
// reads of it report it, and one tenant must not stop the others.
func (s *Server) notShown(ctx context.Context) string {
	if keys := s.reading.queries.Unreadable(); len(keys) > 0 {
		return fmt.Sprintf("%d documents cannot be read, such as %s; skein replay makes them again from the log", len(keys), keys[0])
	}
	count, seq, err := buckets.Broken(ctx, s.reading.log)
	if err != nil || count == 0 {
		return ""
	}
	return fmt.Sprintf("%d commits or documents cannot be shown, the last of commit %d; skein replay --verify names the documents", count, seq)
}

func (s *Server) processReady(context.Context) error {
	select {
	case <-s.stopping:
		return errors.New("it is stopping")
	default:
		return nil
	}
}

func (s *Server) connectionsReady(context.Context) error {
	for _, nc := range s.conns {
		if !nc.IsConnected() {
			return fmt.Errorf("the connection %s to NATS is %s", nc.Opts.Name, nc.Status())
		}
	}
	return nil
}

// logReady queries the leader of the log, because other servers of a cluster answer
// direct gets even after the quorum is lost.
func (s *Server) logReady(ctx context.Context) error {
	if err := s.reading.log.Reachable(ctx); err != nil {
		return fmt.Errorf("its leader does not answer, so that nothing can be stored: %w", err)
	}
	return nil
}
