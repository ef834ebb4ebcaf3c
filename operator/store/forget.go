package store

import (
	"os"
	"slices"
	"strings"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/operator/blocks"
)

// forget drops from what was found elsewhere what this store has erased since: the
// commits of purged threads, and pieces of objects that are not there any more.
func (b *builder) forget(files []blockFile) {
	if len(b.found) == 0 {
		return
	}
	bucket, isObjects := strings.CutPrefix(b.at.stream, objects.Stream(""))
	e := erased{entries: objects.Entries(bucket), threads: map[string]uint64{}, objects: map[string]object{}}
	for _, f := range files {
		raw, err := os.ReadFile(f.path)
		if err != nil {
			continue
		}
		blocks.NewReader(b.at.stream, f.index).Scan(raw, e.see)
	}
	for _, r := range b.found {
		e.see(r.Record)
	}
	ids := map[string]bool{}
	for _, o := range e.objects {
		ids[o.id] = true
	}
	b.found = slices.DeleteFunc(b.found, func(r kept) bool {
		if !isObjects {
			return e.threads[r.Subject] > r.Seq
		}
		id, piece := strings.CutPrefix(r.Subject, objects.Pieces(bucket, ""))
		return piece && !ids[id]
	})
}

// erased is a stream's record of the messages that it erased.
type erased struct {
	entries string            // what the subjects of descriptions begin with
	threads map[string]uint64 // by subject: the sequence of the commit that purged it
	objects map[string]object // by the subject of its description: the newest one
}

type object struct {
	seq uint64
	id  string // of its pieces; empty: it was deleted
}

func (e *erased) see(r blocks.Record) {
	if r.Kind != blocks.Message {
		return
	}
	_, data := r.Body()
	if strings.HasPrefix(r.Subject, "$O.") {
		if !strings.HasPrefix(r.Subject, e.entries) || e.objects[r.Subject].seq > r.Seq {
			return
		}
		found := object{seq: r.Seq}
		if described, ok := objects.Parse(data); ok {
			found.id = described.NUID
		}
		e.objects[r.Subject] = found
		return
	}
	if eventlog.Purges(data) {
		e.threads[r.Subject] = max(e.threads[r.Subject], r.Seq)
	}
}
