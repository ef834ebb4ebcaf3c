package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is a running nats-server. It is safe for concurrent use.
type Server struct {
	nats     *server.Server
	options  Options
	url      string
	lock     *storeLock
	suspects chan error // of capacity 1: an error that the server logged, and that is looked into
	shutdown sync.Once
	reload   sync.Mutex
}

// Start runs a server and returns when it takes connections. See the package
// comment for what holds after an error.
func Start(o Options) (*Server, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	options, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	if !options.DontListen {
		if err := probePort(options.Host, max(options.Port, 0)); err != nil {
			return nil, err
		}
	}
	lock, err := lockStore(o.StoreDir)
	if err != nil {
		return nil, err
	}
	if err := o.checkAccount(); err != nil {
		lock.release()
		return nil, err
	}
	if o.Prepare != nil {
		if err := o.Prepare(); err != nil {
			lock.release()
			return nil, err
		}
	}
	suspects := make(chan error, 1)
	log := newServerLog(o.Logger, o.WriteFailed, func(err error) {
		select {
		case suspects <- err:
		default: // the one before it is looked into, and finds what this one would
		}
	})
	if !o.SyncAlways {
		log.Warnf("sync is off: what was acknowledged since the last sync is lost with the power")
	}
	ns, err := server.NewServer(options)
	if err != nil {
		lock.release()
		return nil, &StartError{Reason: err.Error()}
	}
	ns.SetLoggerV2(log, log.verbose(), false, false)
	s := &Server{nats: ns, options: o, lock: lock, suspects: suspects}
	if err := s.run(o, log); err != nil {
		return nil, err
	}
	if !options.DontListen {
		s.url = ns.ClientURL()
	}
	if o.WriteFailed != nil || o.OtherFailed != nil {
		go s.investigate()
	}
	return s, nil
}

// run starts the server. If it fails, it unlocks the store, but never before the server has
// released it.
func (s *Server) run(o Options, log *serverLog) error {
	started := make(chan struct{})
	go func() {
		defer close(started)
		s.nats.Start() // Returns when it listens, or after a fatal message.
	}()

	limit := time.NewTimer(o.StartTimeout)
	defer limit.Stop()
	select {
	case <-started:
	case <-limit.C:
		go func() {
			<-started
			s.Shutdown()
		}()
		return &StartTimeoutError{Dir: o.StoreDir, After: o.StartTimeout}
	}
	if reason := log.failure(); reason != "" {
		s.Shutdown()
		return &StartError{Reason: reason}
	}
	return nil
}

// connectWithin is how long the server may take to greet a connection of its own process, which
// can be busy but not out of reach.
const connectWithin = 30 * time.Second

// URL is where clients connect, such as nats://127.0.0.1:4222; empty with NoListen.
func (s *Server) URL() string { return s.url }

// ConnectInProcess connects through memory, without a socket, and so without
// TLS. The connection does not outlive the server; it belongs to the caller, who closes it.
func (s *Server) ConnectInProcess(name string, opts ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(nats.DefaultURL, slices.Concat(opts, []nats.Option{nats.Name(name), nats.Timeout(connectWithin), nats.InProcessServer(s.nats)})...)
}

// Reload reads the configuration file again: users who were revoked are
// disconnected, new accounts are known, and new certificates are used for new
// connections. An error means that all is as it was.
func (s *Server) Reload() error {
	s.reload.Lock()
	defer s.reload.Unlock()
	options, err := s.options.serverOptions()
	if err != nil {
		return err
	}
	if err := s.nats.ReloadOptions(options); err != nil {
		return &ConfError{File: s.options.Conf, Err: err}
	}
	return nil
}

// investigate asks the server for the health of its streams when it has logged an error, until it
// ends: of some failed writes the error itself does not tell.
func (s *Server) investigate() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.nats.WaitForShutdown()
	}()
	told := map[string]bool{}
	for {
		select {
		case cause := <-s.suspects:
			if err := s.Unwritten(); err != nil && s.options.WriteFailed != nil {
				s.options.WriteFailed(fmt.Errorf("%w: %w", err, cause))
			}
			for _, err := range s.othersUnwritten() {
				if s.options.OtherFailed != nil && !told[err.Stream] {
					told[err.Stream] = true
					s.options.OtherFailed(err)
				}
			}
		case <-ended:
			return
		}
	}
}

// UnwrittenError says that the server takes no writes to a stream until it is restarted.
type UnwrittenError struct {
	Stream string // empty: to none
	Reason string // as the server says it
}

func (e *UnwrittenError) Error() string {
	if e.Stream == "" {
		return "nats-server takes no writes: " + e.Reason
	}
	return fmt.Sprintf("nats-server takes no writes to the stream %s: %s", e.Stream, e.Reason)
}

// Unwritten returns an *[UnwrittenError] if the server could not write to a stream of the account, or
// has ended JetStream because of that.
func (s *Server) Unwritten() error {
	if !s.nats.Running() {
		return nil // it is being shut down
	}
	if !s.nats.JetStreamEnabled() {
		return &UnwrittenError{Reason: "it has disabled JetStream"}
	}
	for _, stream := range s.options.Streams {
		h := s.nats.Healthz(&server.HealthzOptions{Account: s.options.Account, Stream: stream, Details: true})
		if h.StatusCode == http.StatusNotFound {
			continue
		}
		for _, e := range h.Errors {
			if e.Type == server.HealthzErrorStream {
				return &UnwrittenError{Stream: stream, Reason: e.Error}
			}
		}
	}
	return nil
}

// othersUnwritten returns which streams of the account, besides Options.Streams, the server could not
// write to.
func (s *Server) othersUnwritten() (out []*UnwrittenError) {
	if !s.nats.Running() || !s.nats.JetStreamEnabled() {
		return nil
	}
	h := s.nats.Healthz(&server.HealthzOptions{Account: s.options.Account, Details: true})
	for _, e := range h.Errors {
		// One that is being made or deleted cannot be recovered, and that is no failure.
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, " write error: ") && !slices.Contains(s.options.Streams, e.Stream) {
			out = append(out, &UnwrittenError{Stream: e.Stream, Reason: e.Error})
		}
	}
	return out
}

// Shutdown closes the connections, flushes the store, waits until the server has ended, and
// unlocks the store. It may be called more than once and from several goroutines; every call
// returns after the end. It does not wait for requests in flight: drain them first.
func (s *Server) Shutdown() {
	s.shutdown.Do(func() {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
		if s.options.Ended != nil {
			s.options.Ended()
		}
		s.lock.release()
	})
}

// probePort finds a taken port before the store is opened, and by the system's
// error instead of the text that nats-server would log. Between the probe and
// the start somebody may still take the port; that ends in a StartError.
func probePort(host string, port int) error {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return listener.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		return &PortTakenError{Address: address, Err: err}
	default:
		return &ListenError{Address: address, Err: err}
	}
}
