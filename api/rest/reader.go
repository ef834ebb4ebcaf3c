package rest

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// logPage is how many events are read from the log at once.
const logPage = 1000

// reader reads the events of one thread, each once and in order, for as long as its reader
// wants: from the log until it has caught up, then as they happen.
type reader struct {
	feeds  *feeds
	client *client.Client
	scope  string // of the principal; see scopeOf
	thread string
	types  []string
	seen   int64  // the version up to which everything was sent
	log    string // that seen is of; empty: any, until the log has named itself

	// send sends an event. An error ends the reader.
	send func(e entry) error
	// ready is called once the thread is known to exist, before the first event.
	ready func()
}

// read sends events until ctx ends, the thread is deleted, or sending fails; then it returns
// nil. An error is a refusal, and nothing was sent.
func (r *reader) read(ctx context.Context) error {
	started := false
	for {
		over, err := r.follow(ctx, &started)
		switch {
		case over || ctx.Err() != nil:
			return nil
		case err == nil: // the feed ended: join another
		case started:
			return nil
		default:
			return err
		}
	}
}

// follow reads from one feed, and reports whether there is nothing more to read.
func (r *reader) follow(ctx context.Context, started *bool) (over bool, err error) {
	feed, err := r.feeds.join(ctx, r.client, r.scope, r.thread)
	if err != nil {
		return false, err
	}
	defer feed.leave()
	last := feed.after(r.seen).last
	if over, err = r.readLog(ctx, started, events.Fresh{MinSeq: &feed.base}, last); over || err != nil {
		return over, err
	}
	for {
		now := feed.after(r.seen)
		if now.missing {
			if over, err = r.readLog(ctx, started, events.Fresh{MinVersion: &now.last}, now.last); over || err != nil {
				return over, err
			}
			continue
		}
		for _, e := range now.entries {
			if r.wants(string(e.kind)) && r.send(e) != nil {
				return true, nil
			}
			r.seen = e.version
			if e.kind == events.LifecycleDeletedType {
				return true, nil
			}
		}
		if len(now.entries) > 0 {
			continue
		}
		if now.err != nil {
			return false, nil
		}
		select {
		case <-now.news:
		case <-ctx.Done():
			return true, nil
		}
	}
}

// readLog sends what the log has after what was seen, at least up to a version.
func (r *reader) readLog(ctx context.Context, started *bool, fresh events.Fresh, upTo int64) (over bool, err error) {
	limit := int64(logPage)
	q := events.ListEvents{ThreadID: r.thread, Types: r.types, Limit: &limit, Fresh: fresh}
	for from := r.seen + 1; ; {
		q.FromVersion = &from
		page, err := client.Read(ctx, r.client, q)
		if err == nil {
			err = events.CheckLog(r.log, page.Log)
		}
		if err != nil {
			return false, err
		}
		if !*started {
			*started, r.log = true, page.Log
			r.ready()
		}
		for _, raw := range page.Events {
			var e struct {
				Type    events.Type `json:"type"`
				Version int64       `json:"threadversion"`
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				return false, err
			}
			if r.send(newEntry(e.Version, e.Type, raw)) != nil {
				return true, nil
			}
			r.seen = e.Version
			if e.Type == events.LifecycleDeletedType {
				return true, nil
			}
		}
		if page.NextVersion == 0 {
			r.seen = max(r.seen, upTo)
			return false, nil
		}
		from = page.NextVersion
		r.seen = from - 1
	}
}

// wants reports whether the reader asked for a type of event.
func (r *reader) wants(kind string) bool {
	for _, one := range r.types {
		if entity, all := strings.CutSuffix(one, "*"); one == kind || all && strings.HasPrefix(kind, entity) {
			return true
		}
	}
	return len(r.types) == 0
}
