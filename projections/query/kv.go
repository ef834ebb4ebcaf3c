package query

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// Pairs reads the key-value pairs of tenants. Package eventlog/pairs implements it.
type Pairs interface {
	Get(ctx context.Context, tenant string, d events.GetKV) (*events.KVEntry, error)
	List(ctx context.Context, tenant string, d events.ListKV) (*events.KVList, error)
}

// getKV returns the value of a key, as the leader of its bucket has it now.
func (a *asking) getKV(d events.GetKV) (*events.KVEntry, error) {
	if a.cfg.Pairs == nil {
		return nil, noPairs()
	}
	return a.cfg.Pairs.Get(a.ctx, a.tenant, d)
}

func (a *asking) listKV(d events.ListKV) (*events.KVList, error) {
	if a.cfg.Pairs == nil {
		return nil, noPairs()
	}
	return a.cfg.Pairs.List(a.ctx, a.tenant, d)
}

func noPairs() error {
	return events.Errorf(events.Unavailable, "this process reads no key-value pairs")
}
