package projections

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/projections/cleanup"
	"github.com/skein-threads/skein/projections/documents"
)

// shelf is the runner's view of one bucket.
type shelf struct {
	documents.Projection
	fence  derived.Fence
	stream jetstream.Stream
	prefix string          // of the subjects of its keys
	buffer []byte          // of the document that was sent last
	pieces map[string]bool // of large documents, by key, that are there

	position uint64 // in the log: what its checkpoint said; commits up to it are not folded again
	begun    uint64 // what that was when the session started
	seen     uint64 // the newest commit that a document shows: documents up to it may be there
	newer    uint64 // the first message in the bucket that may be newer than position
	stored   uint64 // what the checkpoint in the bucket says now
	version  int    // of the fold that made its documents

	checkpoint uint64 // the sequence of its checkpoint in the bucket

	broken    int64
	brokenSeq uint64
	touched   bool // the batch wrote to it
}

// session is the runner from one start to the next. It belongs to one goroutine.
type session struct {
	*Runner
	background context.Context // for work outside the loop
	shelves    [documents.Kinds]*shelf
	cache      *cache
	epoch      uint64 // of the checkpoints

	tombs      map[documents.Place]uint64 // documents that were removed after the checkpoint, and at which sequence
	deleted    map[string]uint64          // threads that are known to be deleted while catching up, and where
	horizon    uint64                     // up to it, what is folded may have been folded before
	end        uint64                     // of the log when the session started
	stale      documents.Mask             // read models of another version
	incomplete documents.Mask             // read models whose documents are not all there

	at        uint64    // the last commit that was folded
	atTime    time.Time // when the log stored it
	nextTick  time.Time
	notBefore time.Time // no batch is due before; see pace.go
	dirty     []*node
	changed   []*documents.Slot
	missed    []documents.Place
	deletions []documents.Deletion
	gone      map[string]bool  // threads that were deleted in this batch
	purges    purges           // deleted threads that still have documents
	created   []cleanup.Worker // threads of this batch that work for another

	whole       map[string]bool // threads that were brought back while catching up, see activeFor
	thawedBytes int             // of the documents that were brought back since it was counted last
	thawed      bool            // the batch brings documents of cold threads back
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
