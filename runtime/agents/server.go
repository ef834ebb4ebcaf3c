package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/mcp"
)

// Limits of what looking for MCP servers costs.
const (
	lookFor     = 5 * time.Second        // for one to answer; else it counts as down
	looks       = 32                     // at the same time
	looksTenant = 4                      // of one tenant
	lookPause   = 500 * time.Millisecond // before a tenant uses the place of a look again
	lookFirst   = time.Second            // between two looks for a server; doubles with each
	lookLast    = 30 * time.Second
	maxWatched  = 1000        // of one tenant; further ones are looked for once others are back
	watchedFor  = time.Minute // since it was last asked about

	starts       = 128 // of sessions at the same time, also for calls
	startsTenant = 16  // of one tenant
)

// link returns the sessions with the MCP server of a definition, and its name there. Tenants share
// nothing of it: one may pass values to a server that another may not.
func (d *Directory) link(tenant string, def events.ToolDefinition) (m *mcp.Manager, key, name string, err error) {
	way := *def.Server
	own := server
	if def.Server.Whole() {
		way.Include, way.Exclude, own = nil, nil, def.Name
	}
	raw, err := json.Marshal(way, json.Deterministic(true))
	if err != nil {
		return nil, "", "", events.Invalid("/server", "%w", err)
	}
	key = tenant + "\x00" + string(raw)
	if def.Server.Whole() {
		key = tenant + "\x00" + def.Name + "\x00" + string(raw)
	}
	m, err = d.manager(tenant, key, own, def)
	return m, key, own, err
}

// looking returns the context of a request for a server's tools.
func looking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, lookFor, fmt.Errorf("no answer within %s", lookFor))
}

// found is the tools that a definition offers an agent.
type found struct {
	tools   []runtime.Tool
	version int64
	wait    time.Duration // for its MCP server
	err     error
}

// find returns what definitions of tools offer, in their order. MCP servers are asked at the same
// time, so that several that are down take no longer than one.
func (d *Directory) find(ctx context.Context, tenant string, names []string) []found {
	all := make([]found, len(names))
	var finding sync.WaitGroup
	for i, name := range names {
		f := &all[i]
		var def events.ToolDefinition
		def, f.version, f.err = query.LoadDefinition[events.ToolDefinition](ctx, d.cfg.Definitions, tenant, events.ToolKind, name)
		if events.IsNotFound(f.err) {
			if own, err := d.goTool(name); err == nil { // which needs no definition
				f.tools, f.err = []runtime.Tool{own}, nil
				continue
			}
		}
		if f.err != nil {
			all = all[:i+1]
			break
		}
		def, f.wait = def.WithDefaults(), workerWait(def.WorkerWaitMs)
		if def.Server == nil {
			f.tools, f.err = d.toolsOf(ctx, tenant, def)
			continue
		}
		finding.Go(func() {
			ctx, cancel := looking(ctx)
			defer cancel()
			f.tools, f.err = d.toolsOf(ctx, tenant, def)
		})
	}
	finding.Wait()
	return all
}

// Served is for runtime.Worker.Wake: it also says whether the MCP server of a tenant's definition
// is back, without waiting for that.
func (d *Directory) Served(ctx context.Context, tenant string, worker events.WaitFor) (bool, error) {
	if worker.IsServer() {
		return d.watch.back(tenant, strings.TrimPrefix(worker.Name, events.MCPPrefix)), nil
	}
	return d.cfg.Presence.Served(ctx, worker)
}

// down reports whether the MCP server of a tenant's definition is down. Whatever else is wrong, as
// that it is no longer defined, a run finds out when it goes on.
func (d *Directory) down(ctx context.Context, tenant, tool string) bool {
	def, _, err := query.LoadDefinition[events.ToolDefinition](ctx, d.cfg.Definitions, tenant, events.ToolKind, tool)
	if err != nil || def.Server == nil {
		return err != nil && !events.IsNotFound(err)
	}
	m, _, name, err := d.link(tenant, def.WithDefaults())
	if err != nil {
		return false
	}
	ctx, cancel := looking(ctx)
	defer cancel()
	_, err = m.Tools(ctx, name)
	return errors.Is(err, mcp.ErrDown)
}

// watch looks for MCP servers that runs wait for: each after pauses that grow, however many runs
// wait for it, and few at a time. It is safe for concurrent use.
type watch struct {
	down   func(ctx context.Context, tenant, tool string) bool
	places *quota.Pool
	ctx    context.Context //nolint:containedctx // of looks; ends with stop
	cancel context.CancelFunc
	looks  sync.WaitGroup

	mu    sync.Mutex                     // guards the fields below
	known map[string]map[string]*watched // by tenant and tool
	swept time.Time                      // when servers were last forgotten
}

// watched is a server that runs wait for.
type watched struct {
	pauses  *retry.Attempts
	due     time.Time // of the next look
	asked   time.Time // when a run last waited for it
	looking bool
	back    bool // the last look has found it, and no run was told
}

func newWatch(down func(ctx context.Context, tenant, tool string) bool) *watch {
	w := &watch{down: down, places: quota.NewPool("looks for MCP servers", quota.Places{Total: looks, Tenant: looksTenant}, nil), known: map[string]map[string]*watched{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// stop ends all looks.
func (w *watch) stop() {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.looks.Wait()
}

// back reports whether a server was found since it was last asked about. It starts a look for it
// if one is due.
func (w *watch) back(tenant, tool string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	s := w.known[tenant][tool]
	if s == nil {
		w.forget(now)
		if len(w.known[tenant]) >= maxWatched {
			return false
		}
		if w.known[tenant] == nil {
			w.known[tenant] = map[string]*watched{}
		}
		s = &watched{pauses: retry.Policy{First: lookFirst, Max: lookLast, Jitter: true}.Start()}
		w.known[tenant][tool] = s
	}
	s.asked = now
	if s.back {
		s.back = false
		return true
	}
	if s.looking || now.Before(s.due) || w.ctx.Err() != nil {
		return false
	}
	leave, err := w.places.Try(tenant)
	if err != nil {
		return false
	}
	s.looking = true
	w.looks.Go(func() {
		defer leave()
		down := w.down(w.ctx, tenant, tool)
		w.mu.Lock()
		pause, _ := s.pauses.Next() // also of one that is back: a run may find it down again
		s.looking, s.back, s.due = false, !down, time.Now().Add(pause)
		w.mu.Unlock()
		retry.Sleep(w.ctx, lookPause-time.Since(now))
	})
	return false
}

// forget forgets servers that no run waits for, once a second at most; the caller holds the lock.
func (w *watch) forget(now time.Time) {
	if now.Sub(w.swept) < time.Second {
		return
	}
	w.swept = now
	for tenant, of := range w.known {
		for tool, s := range of {
			if !s.looking && now.Sub(s.asked) > watchedFor {
				delete(of, tool)
			}
		}
		if len(of) == 0 {
			delete(w.known, tenant)
		}
	}
}
