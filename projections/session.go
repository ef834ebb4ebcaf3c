package projections

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/projections/cleanup"
	"github.com/skein-threads/skein/projections/documents"
)

// shelf is the runner's state of one bucket.
type shelf struct {
	documents.Projection
	fence  derived.Fence
	stream jetstream.Stream
	prefix string          // of the subjects of its keys
	buffer []byte          // holds the document that was sent last
	pieces map[string]bool // the stored pieces of large documents, by key

	position uint64 // the sequence in the log up to which commits are not folded again, from its checkpoint
	begun    uint64 // position when the session started
	seen     uint64 // the newest commit that any document shows: documents up to it may exist
	newer    uint64 // the first message in the bucket that may be newer than position
	stored   uint64 // the sequence in the bucket's current checkpoint
	version  int    // the version of the fold that made its documents

	checkpoint uint64 // the sequence of its checkpoint in the bucket

	broken    int64
	brokenSeq uint64
	touched   bool // the current batch has written to it
}

// session is the state of the runner between two interruptions. It belongs to one goroutine.
type session struct {
	*Runner
	background context.Context // for work outside the loop
	shelves    [documents.Kinds]*shelf
	cache      *cache
	epoch      uint64 // of the checkpoints

	tombs      map[documents.Place]uint64 // documents that were removed after the checkpoint, with the sequence of the removal
	deleted    map[string]uint64          // while catching up: threads that are known to be deleted later, with the sequence of the deletion
	horizon    uint64                     // commits up to it may have been folded before
	end        uint64                     // of the log when the session started
	stale      documents.Mask             // read models of another version
	incomplete documents.Mask             // read models that lack documents

	at        uint64    // the last commit that was folded
	atTime    time.Time // when the log stored it
	nextTick  time.Time
	notBefore time.Time // no batch is due before this time; see pace.go
	dirty     []*node
	changed   []*documents.Slot
	missed    []documents.Place
	deletions []documents.Deletion
	gone      map[string]bool  // threads that were deleted in this batch
	purges    purges           // deleted threads that still have documents
	created   []cleanup.Worker // threads created in this batch that work for another

	whole       map[string]bool // threads that were thawed while catching up, see activeFor
	thawedBytes int             // bytes of documents thawed since they were last counted
	thawed      bool            // the batch has thawed threads
}

// from returns the sequence after which the log is read.
func (s *session) from() uint64 {
	from := s.shelves[0].position
	for _, sh := range s.shelves {
		from = min(from, sh.position)
	}
	return from
}

// progress returns the sequence up to which all read models are stored.
func (s *session) progress() uint64 {
	if s.incomplete != 0 {
		return 0
	}
	return s.from()
}

// activeAt returns the read models that do not show a commit yet.
func (s *session) activeAt(seq uint64) documents.Mask {
	if seq > s.horizon {
		return documents.AllKinds
	}
	var m documents.Mask
	for _, sh := range s.shelves {
		if seq > sh.position {
			m = m.With(sh.Kind)
		}
	}
	return m
}
