package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/rs/zerolog"
)

// Site is the listeners of a process that serves HTTP.
type Site struct {
	HTTP, Ops string // URLs; empty: none

	logger    zerolog.Logger
	listeners []listener
	servers   []*http.Server
	serving   sync.WaitGroup
}

// listener is an address that a Site listens on.
type listener struct {
	net.Listener
	ops      bool // for health and metrics
	loopback bool
}

// OpenSite opens the address of the options, unless it is empty, and one for health and metrics,
// unless ops is empty. The logger is told of what fails without a caller who would learn it: a new
// certificate that cannot be used, a handler that panics, a server that ends by itself.
func OpenSite(o ListenOptions, ops string, logger zerolog.Logger) (*Site, error) {
	s := &Site{logger: logger}
	if o.Address != "" {
		l, err := o.Listen()
		if err != nil {
			return nil, err
		}
		encrypted, err := o.TLS(func(err error) { logger.Warn().Err(err).Msg("a certificate cannot be used") })
		if err != nil {
			_ = l.Close() // nothing has used it
			return nil, err
		}
		s.HTTP = "http://" + l.Addr().String()
		if encrypted != nil {
			s.HTTP = "https://" + l.Addr().String()
			l = tls.NewListener(l, encrypted)
		}
		s.listeners = append(s.listeners, listener{Listener: l})
	}
	if ops == "" {
		return s, nil
	}
	l, err := net.Listen("tcp", ops)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("--ops-listen: %w", err)
	}
	s.Ops = "http://" + l.Addr().String()
	tcp, ok := l.Addr().(*net.TCPAddr)
	s.listeners = append(s.listeners, listener{newBounded(l, maxConnections), true, ok && tcp.IP.IsLoopback()})
	return s, nil
}

// Close closes the addresses of a site that serves nothing yet.
func (s *Site) Close() {
	for _, l := range s.listeners {
		_ = l.Close() // nobody used it
	}
}

// Serve serves h, and health and metrics at the address for them.
func (s *Site) Serve(h, ops http.Handler) {
	for _, l := range s.listeners {
		handler := h
		if l.ops {
			handler = ops
			if l.loopback { // elsewhere it has names that are not known here
				handler = ownHost(ops)
			}
		}
		server := NewServer(handler)
		server.ErrorLog = log.New(warnings{s.logger}, "", 0)
		s.servers = append(s.servers, server)
		s.serving.Go(func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.logger.Error().Err(err).Msg("the HTTP server ended")
			}
		})
	}
}

// Stop ends the servers when their requests are answered, or when ctx ends.
func (s *Site) Stop(ctx context.Context) error {
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Shutdown(ctx))
	}
	s.serving.Wait()
	return errors.Join(errs...)
}

// warnings is where an http.Server says what nobody else learns.
type warnings struct{ logger zerolog.Logger }

func (w warnings) Write(line []byte) (int, error) {
	w.logger.Warn().Str("component", "http").Msg(strings.TrimSpace(string(line)))
	return len(line), nil
}
