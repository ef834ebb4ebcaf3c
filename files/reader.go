package files

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// Piece returns piece n, from 0, of a tenant's content. Each piece except the last has
// events.FilePieceBytes bytes. The error may be a *NotStoredError or a *DamagedError.
func (s *Store) Piece(ctx context.Context, tenant, digest string, n int64) ([]byte, error) {
	data, err := s.piece(ctx, tenant, digest, n)
	var damaged *objects.DamagedError
	if errors.As(err, &damaged) && damaged.Missing { // the object was deleted, and perhaps stored again
		s.forget(tenant, digest)
		data, err = s.piece(ctx, tenant, digest, n)
	}
	return data, readError(tenant, digest, err)
}

func (s *Store) piece(ctx context.Context, tenant, digest string, n int64) ([]byte, error) {
	o, _, err := s.locate(ctx, tenant, digest, n)
	if err != nil {
		return nil, err
	}
	return s.objects.Piece(quota.Unmeasured(ctx), o, n)
}

// readError converts an error of reading an object to an error about the content.
func readError(tenant, digest string, err error) error {
	var damaged *objects.DamagedError
	if errors.As(err, &damaged) {
		return &DamagedError{tenant, digest, damaged.How}
	}
	return err
}

// locate returns the sequence of a piece in the stream.
func (s *Store) locate(ctx context.Context, tenant, digest string, n int64) (*objects.Object, uint64, error) {
	o, err := s.object(ctx, tenant, digest)
	if err != nil {
		return nil, 0, err
	}
	seq, ok := o.PieceSeq(n)
	if !ok {
		return nil, 0, events.Invalid("/piece", "the content has %d pieces, and no piece %d", o.Chunks, n)
	}
	return o, seq, nil
}

// forward makes the server send a piece from the stream to a subject. If the stream does not have
// the message, the server sends an empty one with an error status.
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

// All yields the pieces of a tenant's content in order, reading ahead. It ends with a
// *DamagedError if they do not match the digest.
func (s *Store) All(ctx context.Context, tenant, digest string) iter.Seq2[[]byte, error] {
	read := func(ctx context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			o, err := s.named(ctx, tenant, digest)
			if err != nil {
				yield(nil, err)
				return
			}
			r := s.objects.Read(quota.Unmeasured(ctx), o)
			for piece, err := range r.Pieces() {
				if !yield(piece, readError(tenant, digest, err)) {
					return
				}
			}
			if r.Object() != o { // the cached object was replaced
				s.forget(tenant, digest)
			}
		}
	}
	return streams.Prefetch(ctx, events.FilePieceBytes, func(piece []byte) int { return len(piece) }, read)
}

// named returns the object of a content. Its digest is set to the one in the object's name, so
// that reading verifies against that and not against the entry.
func (s *Store) named(ctx context.Context, tenant, digest string) (*objects.Object, error) {
	known, err := s.object(ctx, tenant, digest)
	if err != nil {
		return nil, err
	}
	sum, err := hex.DecodeString(digest)
	if err != nil {
		return nil, fmt.Errorf("read content %s: %w", digest, err)
	}
	o := *known
	o.Digest = objects.DigestOf(sum)
	return &o, nil
}

// Size returns the size of a tenant's content in bytes, or a *NotStoredError.
func (s *Store) Size(ctx context.Context, tenant, digest string) (int64, error) {
	o, err := s.object(ctx, tenant, digest)
	if err != nil {
		return 0, err
	}
	return o.Size, nil
}
