package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/service"
)

// ServiceConfig bounds a service. The zero value of a field means its default.
type ServiceConfig struct {
	Version           string            // of the NATS service; default 0.0.0
	Build             map[string]string // see service.Endpoint
	Uploads           *quota.Pool       // places for uploads in progress; default DefaultUploads
	Idle              time.Duration     // after which an upload that receives nothing is dropped; default 30 s
	Longest           time.Duration     // maximum duration of an upload; default DefaultUploadTime
	Answers, Refusals *nats.Conn        // see service.Endpoint
	Conn              *nats.Conn        // receives requests; default: the log's
	Tenants           quota.Limits
	Fair              quota.Fair      // of each tenant, while others are active
	Metrics           service.Limited // counts what a tenant's limits refused; may be nil
}

// Defaults of the number of uploads in progress in a process, and of the duration of one.
const (
	DefaultUploads    = 64
	DefaultUploadTime = 2 * time.Hour
)

func (c ServiceConfig) withDefaults() ServiceConfig {
	if c.Version == "" {
		c.Version = "0.0.0"
	}
	if c.Uploads == nil {
		c.Uploads = quota.NewPool("uploads", quota.Places{Total: DefaultUploads}, nil)
	}
	if c.Longest == 0 {
		c.Longest = DefaultUploadTime
	}
	if c.Idle == 0 {
		c.Idle = 30 * time.Second
	}
	return c
}

// Service uploads and downloads the bytes of files over NATS, on
// {prefix}.file.{tenant}.content.put and .get.
type Service struct {
	log     *eventlog.Log
	store   *Store
	writes  *commands.Dispatcher
	queries *query.Queries
	cfg     ServiceConfig
	logger  zerolog.Logger
	service *service.Service
	running sync.WaitGroup
	ctx     context.Context // ends when the service stops
	cancel  context.CancelFunc

	mu     sync.Mutex           // guards the fields below
	opened map[string]time.Time // until when a thread's content may be read without another check
}

// Serve starts a service. Stop it before its connection is closed.
func Serve(log *eventlog.Log, store *Store, writes *commands.Dispatcher, queries *query.Queries, cfg ServiceConfig, logger zerolog.Logger) (*Service, error) {
	s := &Service{
		log: log, store: store, writes: writes, queries: queries, cfg: cfg.withDefaults(), logger: logger,
		opened: map[string]time.Time{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.service, err = service.Serve(cmp.Or(s.cfg.Conn, log.Conn()), log.Config().Names, service.Endpoint{
		Name: "skein-files", Description: "Contents of files", Kind: events.KindFile, Pattern: "*.content.*", Version: s.cfg.Version, Build: s.cfg.Build,
		Requests: []string{"content.get", "content.put"}, InFlight: 256, Time: service.RequestTime,
		Tenants: s.cfg.Tenants, Metrics: s.cfg.Metrics, Fair: s.cfg.Fair, Answers: s.cfg.Answers, Refusals: s.cfg.Refusals,
	}, s.handle, logger)
	if err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// Stop accepts no more requests, and drops uploads in progress.
func (s *Service) Stop(ctx context.Context) error {
	err := s.service.Stop(ctx)
	s.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.running.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("stop file service: uploads were still in progress: %w", ctx.Err()))
	}
	return err
}

func (s *Service) handle(ctx context.Context, tenant, name string, body []byte, meta service.Meta) (any, error) {
	if err := events.CheckTenant("", tenant); err != nil {
		return nil, err
	}
	switch name {
	case "content.get":
		return s.get(ctx, tenant, body, meta)
	case "content.put":
		return s.begin(ctx, tenant, body, meta)
	}
	return nil, events.Errorf(events.NotFound, "no such request: %.64s; see docs/files.md", name)
}

// getContent is the body of content.get.
type getContent struct {
	ThreadID string `json:"threadId"`
	Path     string `json:"path"` // a path that probably has the content
	Digest   string `json:"digest"`
	Piece    int64  `json:"piece"`
	Direct   bool   `json:"direct"` // the server may send the piece from the stream directly to the caller
}

// otherAccount is the prefix of the subjects on which nats-server receives replies for another
// account. Only the receiver of the request may publish there.
const otherAccount = "_R_."

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// get returns a piece of content that the thread's history names. If the caller allows it, the
// server sends the piece from the stream directly to the caller, and not through this process.
func (s *Service) get(ctx context.Context, tenant string, body []byte, meta service.Meta) (any, error) {
	var q getContent
	if err := json.Unmarshal(body, &q, json.RejectUnknownMembers(true)); err != nil {
		return nil, events.Invalid("", "content.get takes threadId, path, digest and piece: %w", err)
	}
	switch {
	case !events.ValidThreadID(q.ThreadID):
		return nil, events.Invalid("/threadId", "a thread's id is needed, as a file's record has it")
	case !digestPattern.MatchString(q.Digest):
		return nil, events.Invalid("/digest", "a digest is needed, as a file's record has it")
	}
	if err := s.open(ctx, tenant, q); err != nil {
		return nil, err
	}
	if q.Direct && meta.Reply != "" && !strings.HasPrefix(meta.Reply, otherAccount) {
		err := s.store.forward(ctx, tenant, q.Digest, q.Piece, meta.Reply)
		if err != nil {
			return nil, refusal(err)
		}
		return service.Answered{}, nil
	}
	data, err := s.store.Piece(ctx, tenant, q.Digest, q.Piece)
	if err != nil {
		return nil, refusal(err)
	}
	return service.Bytes(data), nil
}

// refusal converts an error of reading content into an error for the caller.
func refusal(err error) error {
	var missing *NotStoredError
	var damaged *DamagedError
	switch {
	case errors.As(err, &missing):
		return events.Missing("content", missing.Digest)
	case errors.As(err, &damaged):
		return events.Errorf(events.NotFound, "read content: %w", err)
	}
	return err
}

const (
	openFor    = 30 * time.Second // short, so that reading ends soon after the thread is deleted
	openAtMost = 10_000
)

// open checks that the thread's history names the content. Usually the record at the path
// does; if the path has been overwritten since, the log is searched.
func (s *Service) open(ctx context.Context, tenant string, q getContent) error {
	key := tenant + "." + q.ThreadID + "." + q.Digest
	now := time.Now()
	s.mu.Lock()
	until := s.opened[key]
	s.mu.Unlock()
	if now.Before(until) {
		return nil
	}
	named, err := s.named(ctx, tenant, q)
	if err != nil {
		return err
	}
	if !named {
		return events.Missing("content", q.Digest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.opened) >= openAtMost {
		clear(s.opened)
	}
	s.opened[key] = now.Add(openFor)
	return nil
}

func (s *Service) named(ctx context.Context, tenant string, q getContent) (bool, error) {
	ask, err := json.Marshal(events.StatFile{ThreadID: q.ThreadID, Path: q.Path})
	if err != nil {
		return false, events.Invalid("/path", "a path is UTF-8, and this is not")
	}
	out, err := s.queries.Handle(ctx, tenant, "file.stat", ask, service.Meta{})
	if file, ok := out.(*events.FileRecord); ok && err == nil && file.Digest == q.Digest {
		return true, nil
	}
	if err != nil && events.AsError(err).Retry() {
		return false, err
	}
	named := false
	for c, err := range s.log.Thread(ctx, tenant, q.ThreadID, 1) {
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken):
			continue
		case err != nil:
			return false, err
		}
		for i := range c.Events {
			switch d := c.Events[i].Data.(type) {
			case events.FileWritten:
				named = named || d.Digest == q.Digest
			case events.LifecycleDeleted:
				named = false
			}
		}
	}
	return named, nil
}
