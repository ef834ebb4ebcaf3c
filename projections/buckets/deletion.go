package buckets

import (
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// Deletion is a note in the bucket of threads that the cleanup of a deleted thread is not
// finished, so that it is continued after a crash.
type Deletion struct {
	Tenant string `json:"tenant"`
	Thread string `json:"thread"`
	Seq    uint64 `json:"seq"` // of the tombstone's commit
	Purge  bool   `json:"purge,omitzero"`
}

// Key returns the key of the note.
func (d Deletion) Key() string { return DeletionPrefix + documents.ThreadName(d.Tenant, d.Thread) }

// Deletes reports whether a commit is a thread's last one, its tombstone.
func Deletes(c *events.Commit) bool {
	_, ok := c.Events[len(c.Events)-1].Data.(events.LifecycleDeleted)
	return ok
}
