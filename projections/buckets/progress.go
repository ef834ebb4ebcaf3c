package buckets

import (
	"context"
	"sync"
)

// Progress is the sequence in the log up to which all read models are stored. Readers can wait for
// it. If the runner and the queries of one process share a Progress, readers save a round trip to
// the server. It is safe for concurrent use.
type Progress struct {
	mu     sync.Mutex // guards what follows
	seq    uint64
	start  uint64        // see Started
	change chan struct{} // closed when seq changes

	wanted chan struct{} // of capacity 1: full while a reader waits
}

// NewProgress returns a Progress at sequence 0.
func NewProgress() *Progress {
	return &Progress{change: make(chan struct{}), wanted: make(chan struct{}, 1)}
}

// Seq returns the sequence in the log up to which all read models are stored.
func (p *Progress) Seq() uint64 {
	seq, _ := p.Now()
	return seq
}

// Now returns the sequence, and a channel that is closed when it changes.
func (p *Progress) Now() (uint64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq, p.change
}

// Start records where the log ended when readers began to follow it. Until all read models show
// that sequence, lists may be incomplete.
func (p *Progress) Start(end uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = end
}

// Started returns the sequence that Start has recorded, 0 if it was not called.
func (p *Progress) Started() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start
}

// Set sets the sequence. It may be lower than before: a server that crashed may have
// lost what it had not yet written to disk.
func (p *Progress) Set(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq != p.seq {
		p.seq = seq
		close(p.change)
		p.change = make(chan struct{})
	}
}

// Raise sets the sequence if that raises it.
func (p *Progress) Raise(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq > p.seq {
		p.seq = seq
		close(p.change)
		p.change = make(chan struct{})
	}
}

// Wanted returns a channel that has a value while a reader waits for a commit that the runner of
// this process has not stored yet.
func (p *Progress) Wanted() <-chan struct{} { return p.wanted }

// Want tells the runner of this process that a reader waits.
func (p *Progress) Want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// Wait blocks until the read models show a sequence. The error is the cause of ctx.
func (p *Progress) Wait(ctx context.Context, seq uint64) error {
	for {
		now, change := p.Now()
		if now >= seq {
			return nil
		}
		p.Want()
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
