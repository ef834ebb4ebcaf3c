package projections

import (
	"context"
	"sync"
)

// Progress is how far all read models have got, for whoever waits for it. A
// runner and the queries of one process may share one, which saves a reader the
// way through the server. It is safe for concurrent use.
type Progress struct {
	mu     sync.Mutex // guards what follows
	seq    uint64
	change chan struct{} // closed when seq changes

	wanted chan struct{} // of capacity 1: holds something when somebody waits
}

// NewProgress gives one that stands at 0.
func NewProgress() *Progress {
	return &Progress{change: make(chan struct{}), wanted: make(chan struct{}, 1)}
}

// Seq gives the sequence in the log up to which all read models are stored.
func (p *Progress) Seq() uint64 {
	seq, _ := p.now()
	return seq
}

// now gives the sequence, and a channel that is closed when it changes.
func (p *Progress) now() (uint64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq, p.change
}

// set tells how far the read models have got. It may be less than before: a
// server that crashed may have lost what it had not put to disk.
func (p *Progress) set(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq != p.seq {
		p.seq = seq
		close(p.change)
		p.change = make(chan struct{})
	}
}

// raise tells of progress that is known to be stored, and never goes back.
func (p *Progress) raise(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq > p.seq {
		p.seq = seq
		close(p.change)
		p.change = make(chan struct{})
	}
}

// want tells the runner of this process that somebody waits for what it has not
// stored yet.
func (p *Progress) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// Wait waits until the read models show a sequence. The error is ctx's.
func (p *Progress) Wait(ctx context.Context, seq uint64) error {
	for {
		now, change := p.now()
		if now >= seq {
			return nil
		}
		p.want()
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
