package rebuild

import (
	"context"
	"fmt"
	"strings"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// groupThreads is how many threads a worker compares after one read of each bucket: a
// read for each of them would cost more than all other work on the documents.
const groupThreads = 4

// group is the live documents of some threads. They are read before the log, so the
// log has everything that they show.
type group struct {
	upTo [documents.Kinds]uint64 // the sequence that each live read model certainly showed when they were read
	docs map[threadName]*[documents.Kinds][]streams.Message
	cold map[threadName]bool // marked as such: documents may be absent, see buckets.Mark
}

// nextGroup returns the next threads of work, without waiting for more than the first;
// none once work is closed.
func nextGroup(work <-chan threadName) []threadName {
	first, ok := <-work
	if !ok {
		return nil
	}
	names := []threadName{first}
	for len(names) < groupThreads {
		select {
		case name, ok := <-work:
			if !ok {
				return names
			}
			names = append(names, name)
		default:
			return names
		}
	}
	return names
}

// readGroup reads the live documents of threads.
func (b *rebuilding) readGroup(ctx context.Context, names ...threadName) (*group, error) {
	g := &group{upTo: b.certainSeqs(), docs: make(map[threadName]*[documents.Kinds][]streams.Message, len(names)), cold: map[threadName]bool{}}
	for _, name := range names {
		g.docs[name] = &[documents.Kinds][]streams.Message{}
	}
	if err := g.readMarks(ctx, b.log, b.models.Of(documents.Threads), names); err != nil {
		return nil, fmt.Errorf("reading which threads are cold: %w", err)
	}
	for _, p := range b.models.List() {
		if !b.kinds.Has(p.Kind) {
			continue
		}
		if err := g.read(ctx, b.log, p, names); err != nil {
			return nil, fmt.Errorf("reading documents of %s: %w", p.Name, err)
		}
	}
	return g, nil
}

// readMarks reads which of the threads are cold.
func (g *group) readMarks(ctx context.Context, log *eventlog.Log, p documents.Projection, names []threadName) error {
	of := map[string]threadName{}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i], of[name.String()] = name.String(), name
	}
	got, err := log.Bucket(p.Bucket).Get(ctx, keys...)
	for _, m := range got {
		g.cold[of[m.Subject]] = buckets.MarkOf(m.Header).Cold
	}
	return err
}

// read reads the documents of one read model.
func (g *group) read(ctx context.Context, log *eventlog.Log, p documents.Projection, names []threadName) error {
	patterns, of := []string{}, map[string]threadName{}
	for _, name := range names {
		if pattern, key := keysOf(p.Kind, name); pattern != "" {
			patterns = append(patterns, pattern)
			of[key] = name
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	got, err := log.Bucket(p.Bucket).All(ctx, patterns...)
	if err != nil {
		return err
	}
	for _, m := range got {
		tenant, rest, _ := strings.Cut(m.Subject, ".")
		key := tenant
		if p.Kind != documents.Definitions {
			thread, _, _ := strings.Cut(rest, ".")
			key = documents.ThreadName(tenant, thread)
		}
		if name, ok := of[key]; ok {
			docs := g.docs[name]
			docs[p.Kind] = append(docs[p.Kind], m)
		}
	}
	return nil
}

// keysOf returns the pattern of the keys of a thread's documents in a bucket, and what
// those keys begin with; nothing if it has none there.
func keysOf(k documents.Kind, name threadName) (pattern, begins string) {
	switch isThread := events.IsThread(name.thread); {
	case isThread == (k == documents.Definitions):
		return "", ""
	case k == documents.Definitions:
		return name.tenant + ".>", name.tenant
	case k == documents.Threads:
		return name.String(), name.String()
	}
	return name.String() + ".>", name.String()
}
