package streams

import (
	"context"
	"sync"
)

// sharedEnds asks the leader of a stream one question at a time where it ends, for all who want to
// know: an answer serves those who came before its question was sent.
type sharedEnds struct {
	mu    sync.Mutex
	asked map[string]*endAnswer // by stream that is being asked about: the next answer; nil: nobody waits for one
}

// endAnswer is an answer that is still to come.
type endAnswer struct {
	done chan struct{}
	end  End
	err  error
}

// get returns where a stream ends, at the earliest when get was called.
func (s *sharedEnds) get(ctx context.Context, stream string, ask func(context.Context, string) (End, error)) (End, error) {
	s.mu.Lock()
	next, busy := s.asked[stream]
	switch {
	case !busy && s.asked == nil:
		s.asked = map[string]*endAnswer{stream: nil}
	case !busy:
		s.asked[stream] = nil
	case next == nil:
		next = &endAnswer{done: make(chan struct{})}
		s.asked[stream] = next
	}
	s.mu.Unlock()
	if !busy {
		defer s.answered(stream, ask)
		return ask(ctx, stream)
	}
	select {
	case <-next.done:
		return next.end, next.err
	case <-ctx.Done():
		return End{}, context.Cause(ctx)
	}
}

// answered notes that a question was answered, and asks for those who came meanwhile: with JetStream's
// own timeout, since it is not for one of them.
func (s *sharedEnds) answered(stream string, ask func(context.Context, string) (End, error)) {
	s.mu.Lock()
	next := s.asked[stream]
	if s.asked[stream] = nil; next == nil {
		delete(s.asked, stream)
	}
	s.mu.Unlock()
	if next == nil {
		return
	}
	go func() {
		defer s.answered(stream, ask)
		defer close(next.done)
		next.end, next.err = ask(context.Background(), stream)
	}()
}
