package server

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/build"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/service"
)

const (
	embeddingsInFlight = 64              // each holds texts and vectors of at most a message
	countTime          = 2 * time.Second // of an attempt to count tokens
	countTries         = 4               // so many attempts
)

// embeddings answers requests for embeddings with the endpoints of models. They are no queries: they
// cost the tenant tokens, so that only those may send them who may send commands.
type embeddings struct {
	server      *Server
	log         *eventlog.Log
	definitions *query.Definitions
}

// serveEmbeddings serves the requests for embeddings. A process that runs no agents has no endpoints.
func (s *Server) serveEmbeddings(log *eventlog.Log, definitions *query.Definitions) (err error) {
	e := &embeddings{s, log, definitions}
	s.embeddings, err = service.Serve(s.clients, s.cfg.Names, service.Endpoint{
		Name: "skein-embeddings", Description: "Embeddings by the endpoints of models", Kind: events.KindFile, Pattern: "*.model.*", Version: s.cfg.Version, Build: build.This().Metadata(),
		Requests: []string{client.EmbedRequest}, InFlight: embeddingsInFlight, Time: client.EmbedTime,
		Tenants: s.cfg.limits(), Metrics: s.metrics, Fair: s.fair(1), Answers: s.answers, Refusals: s.refusals,
	}, e.handle, s.logger)
	return err
}

func (e *embeddings) handle(ctx context.Context, tenant, name string, body []byte, _ service.Meta) (any, error) {
	if err := events.CheckTenant("", tenant); err != nil {
		return nil, err
	}
	if name != client.EmbedRequest {
		return nil, events.Errorf(events.NotFound, "no such request: %.64s; see docs/models.md", name)
	}
	var q client.Embed
	if err := json.Unmarshal(body, &q, json.RejectUnknownMembers(true)); err != nil {
		return nil, events.Invalid("", "%s takes model, inputs, encodingFormat, dimensions and user: %w", name, err)
	}
	if len(q.Inputs) == 0 {
		return nil, events.Invalid("/inputs", "there is nothing to embed")
	}
	m, err := e.model(ctx, tenant, q.Model)
	if err != nil {
		return nil, err
	}
	if budget := e.server.work.budget; budget != nil {
		if err := budget.Check(ctx, tenant); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	got, err := e.server.work.models.Embed(ctx, tenant, m, model.EmbedRequest{Inputs: q.Inputs, EncodingFormat: q.EncodingFormat, Dimensions: q.Dimensions, User: q.User})
	e.server.metrics.Runs().Embedding(err != nil, time.Since(start))
	if err != nil {
		return nil, err
	}
	e.count(ctx, tenant, got.Tokens)
	return client.Embeddings{Embeddings: got.Embeddings, Tokens: got.Tokens}, nil
}

// count counts the tokens of an answer, which were paid for also if the caller has gone.
func (e *embeddings) count(ctx context.Context, tenant string, tokens int64) {
	budget := e.server.work.budget
	if budget == nil {
		return
	}
	id := "embedding-" + uuid.NewString()
	var err error
	for range countTries {
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
		err = budget.Spend(one, tenant, id, min(tokens, mostCounted))
		cancel()
		if err == nil {
			return
		}
	}
	e.server.logger.Error().Err(err).Int64("tokens", tokens).Msg("cannot count tokens; the tenant's budget does not include them")
}

// mostCounted is how many tokens of one answer count, whatever its endpoint reports.
const mostCounted = 1 << 40

// model returns a model that embeds texts, also one that another process has just defined.
func (e *embeddings) model(ctx context.Context, tenant, name string) (m runtime.Model, _ error) {
	load := func() (events.ModelDefinition, error) {
		def, _, err := query.LoadDefinition[events.ModelDefinition](ctx, e.definitions, tenant, events.ModelKind, name)
		return def, err
	}
	if !events.Pattern(events.PatternName).MatchString(name) {
		return m, events.Missing("model", name)
	}
	if err := e.server.defined(ctx, e.log, tenant, false); err != nil {
		return m, err
	}
	def, err := load()
	if events.IsNotFound(err) {
		if err := e.server.defined(ctx, e.log, tenant, true); err != nil {
			return m, err
		}
		if def, err = load(); events.IsNotFound(err) {
			return m, events.Missing("model", name)
		}
	}
	if err != nil {
		return m, err
	}
	if reactor := def.WithDefaults().Reactor; reactor != events.DefaultReactor {
		return m, events.Invalid("/model", "the model %.64q is served by the reactor %.64q, and only endpoints of models make embeddings", name, reactor)
	}
	return runtime.Model{Name: def.Name, Model: def.Model, Endpoint: def.Endpoint}, nil
}
