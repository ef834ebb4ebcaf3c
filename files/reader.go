package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
)

// Piece returns one piece of a tenant's content, from 0. Each except the last has
// events.FilePieceBytes. The error may be a *NotStoredError or a *DamagedError.
func (s *Store) Piece(ctx context.Context, tenant, digest string, n int64) ([]byte, error) {
	data, err := s.piece(ctx, tenant, digest, n)
	if errors.Is(err, jetstream.ErrMsgNotFound) { // it was deleted, and perhaps stored again
		s.forget(tenant, digest)
		data, err = s.piece(ctx, tenant, digest, n)
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, &DamagedError{tenant, digest, fmt.Sprintf("piece %d is missing", n)}
	}
	return data, err
}

func (s *Store) piece(ctx context.Context, tenant, digest string, n int64) ([]byte, error) {
	o, seq, err := s.locate(ctx, tenant, digest, n)
	if err != nil {
		return nil, err
	}
	m, err := s.stream.GetMsg(ctx, seq)
	if err != nil {
		return nil, fmt.Errorf("read piece of content: %w", err)
	}
	want := min(events.FilePieceBytes, o.entry.Size-n*events.FilePieceBytes)
	if m.Subject != objects.Pieces(s.bucket, o.entry.NUID) || int64(len(m.Data)) != want {
		return nil, &DamagedError{tenant, digest, fmt.Sprintf("piece %d is another message", n)}
	}
	return m.Data, nil
}

// locate finds the sequence of a piece in the stream.
func (s *Store) locate(ctx context.Context, tenant, digest string, n int64) (*object, uint64, error) {
	o, err := s.object(ctx, tenant, digest)
	if err != nil {
		return nil, 0, err
	}
	if n >= 0 {
		if seq := o.pieces.at(n); seq != 0 {
			return o, seq, nil
		}
	}
	return nil, 0, events.Invalid("/piece", "the content has %d pieces, and no piece %d", o.entry.Chunks, n)
}

// forward makes the stream send a piece to a subject. If the stream lacks the message, it
// sends one without data that says so.
func (s *Store) forward(ctx context.Context, tenant, digest string, n int64, to string) error {
	_, seq, err := s.locate(ctx, tenant, digest, n)
	if err != nil {
		return err
	}
	ask := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	if err := s.js.Conn().PublishRequest(s.api+".DIRECT.GET."+objects.Stream(s.bucket), to, append(ask, '}')); err != nil {
		return fmt.Errorf("read piece of content: %w", err)
	}
	return nil
}

// All yields the pieces of a tenant's content in order, reading one ahead. It ends with a
// *DamagedError if they do not match the digest.
func (s *Store) All(ctx context.Context, tenant, digest string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		o, err := s.object(ctx, tenant, digest)
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		sum := sha256.New()
		next := s.ahead(ctx, tenant, digest, 0)
		for n := range o.entry.Chunks {
			got := <-next
			if got.err != nil {
				yield(nil, got.err)
				return
			}
			if n+1 < o.entry.Chunks {
				next = s.ahead(ctx, tenant, digest, n+1)
			}
			_, _ = sum.Write(got.data) // never fails
			if !yield(got.data, nil) {
				return
			}
		}
		if have := hex.EncodeToString(sum.Sum(nil)); have != digest {
			yield(nil, &DamagedError{tenant, digest, "its bytes have the digest " + have})
		}
	}
}

type fetched struct {
	data []byte
	err  error
}

func (s *Store) ahead(ctx context.Context, tenant, digest string, n int64) <-chan fetched {
	out := make(chan fetched, 1)
	go func() {
		data, err := s.Piece(ctx, tenant, digest, n)
		out <- fetched{data, err}
	}()
	return out
}

// Size returns the size of a tenant's content in bytes, or a *NotStoredError.
func (s *Store) Size(ctx context.Context, tenant, digest string) (int64, error) {
	o, err := s.object(ctx, tenant, digest)
	if err != nil {
		return 0, err
	}
	return o.entry.Size, nil
}
