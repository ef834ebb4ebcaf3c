package store

import (
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/internal/blocks"
)

// forget drops from what was found elsewhere what this store has erased since: the
// commits of purged threads, and pieces of objects that are not there any more.
func (b *builder) forget(files []blockFile) {
	if len(b.found) == 0 {
		return
	}
	e := erased{threads: map[string]uint64{}, objects: map[string]object{}}
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
	objects := strings.HasPrefix(b.at.stream, "OBJ_")
	ids := map[string]bool{}
	for _, o := range e.objects {
		ids[o.id] = true
	}
	b.found = slices.DeleteFunc(b.found, func(r kept) bool {
		if !objects {
			return e.threads[r.Subject] > r.Seq
		}
		_, id, piece := strings.Cut(r.Subject, ".C.")
		return piece && !ids[id]
	})
}

// erased is what a stream says of what it erased.
type erased struct {
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
		if !strings.Contains(r.Subject, ".M.") || e.objects[r.Subject].seq > r.Seq {
			return
		}
		var described struct {
			ID      string `json:"nuid"`
			Deleted bool   `json:"deleted"`
		}
		if json.Unmarshal(data, &described) != nil || described.Deleted {
			described.ID = ""
		}
		e.objects[r.Subject] = object{r.Seq, described.ID}
		return
	}
	if eventlog.Purges(data) {
		e.threads[r.Subject] = max(e.threads[r.Subject], r.Seq)
	}
}
