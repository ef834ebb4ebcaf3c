package objects

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/skein-threads/skein/eventlog/streams"
)

// Pieces are requested together up to these bounds, which are also what a Reader holds.
const (
	aheadBytes  = 512 << 10
	aheadPieces = 4
)

// Reader reads one object from its first piece to its last, and holds few of them at a time. Each
// method fails with the cause of the end of its context, a *[DamagedError], or the error of a store
// that does not answer; after a failure all further calls fail in the same way.
//
// What a copy of the store that lags does not have is read from the leader. If the object is replaced
// by an equal one while it is read, the Reader continues in that one.
//
// It is not safe for concurrent use. It needs no Close.
type Reader struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the read
	store Store
	of    *Object

	fetched []streams.Message // pieces that Next has not returned
	from    uint64            // no later piece has a smaller sequence
	skip    int64             // pieces of an equal object that were read in the one that it replaced
	read    int64             // pieces that Next has returned
	size    int64             // their bytes
	sum     hash.Hash         // of them

	rest []byte // of a piece that Read has returned in part
	err  error
}

// Read begins to read an object, as Find has returned it.
func (s Store) Read(ctx context.Context, o *Object) *Reader {
	return &Reader{ctx: ctx, store: s, of: o, sum: sha256.New()}
}

// Object returns the object that is read.
func (r *Reader) Object() *Object { return r.of }

// Err returns what ended the read early; nil if nothing did.
func (r *Reader) Err() error {
	if r.err == io.EOF { //nolint:errorlint // a wrapped one is a failure
		return nil
	}
	return r.err
}

// Next returns the next piece. The error after the last one is io.EOF if the object has the size and
// the digest that its entry says.
func (r *Reader) Next() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	piece, err := r.next()
	if err != nil {
		r.err = err
		return nil, err
	}
	r.read, r.size = r.read+1, r.size+int64(len(piece))
	_, _ = r.sum.Write(piece) // never fails
	return piece, nil
}

func (r *Reader) next() ([]byte, error) {
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	if r.read == r.of.Chunks {
		return nil, r.checkWhole()
	}
	for len(r.fetched) == 0 {
		err := r.fetch()
		var damaged *DamagedError
		if errors.As(err, &damaged) && damaged.Missing {
			err = r.switchToEqual(err)
		}
		if err != nil {
			return nil, err
		}
	}
	m := r.fetched[0]
	r.fetched = r.fetched[1:]
	if r.size+int64(len(m.Data)) > r.of.Size {
		return nil, &DamagedError{Name: r.of.Name, How: fmt.Sprintf("it has more than the %d bytes of its entry", r.of.Size)}
	}
	return m.Data, nil
}

// checkWhole returns io.EOF if what was read is the whole object.
func (r *Reader) checkWhole() error {
	if r.size != r.of.Size {
		return &DamagedError{Name: r.of.Name, How: fmt.Sprintf("it has %d bytes, and its entry says %d", r.size, r.of.Size)}
	}
	if digest := DigestOf(r.sum.Sum(nil)); r.of.Digest != "" && digest != r.of.Digest {
		return &DamagedError{Name: r.of.Name, How: fmt.Sprintf("its bytes have the digest %s, and its entry says %.80q", digest, r.of.Digest)}
	}
	return io.EOF
}

// fetch reads further pieces.
func (r *Reader) fetch() error {
	most := aheadPieces
	if r.of.Options.PieceBytes > 0 {
		most = int(max(min(aheadPieces, aheadBytes/r.of.Options.PieceBytes), 1))
	}
	left := r.of.Chunks - r.read + r.skip
	ask := min(int64(most), left)
	if ask == left && r.of.pieces == nil {
		ask++ // nothing may follow
	}
	got, err := r.store.pieces(r.ctx, r.of, r.read, r.from, int(ask))
	if err != nil {
		return err
	}
	if int64(len(got)) > left {
		return &DamagedError{Name: r.of.Name, How: fmt.Sprintf("it has more pieces than the %d of its entry", r.of.Chunks)}
	}
	r.from = got[len(got)-1].Seq + 1
	seen := min(r.skip, int64(len(got)))
	r.skip -= seen
	r.fetched = got[seen:]
	return nil
}

// switchToEqual continues in the object that has taken the place of the one that is read, which
// lacks a piece. It returns the error if there is none that is equal.
func (r *Reader) switchToEqual(missing error) error {
	now, err := r.store.Find(r.ctx, r.of.Name)
	var damaged *DamagedError
	switch {
	case errors.As(err, &damaged):
		return missing
	case err != nil:
		return err
	case !now.Exists() || now.NUID == r.of.NUID:
		return missing
	case now.Digest == "" || now.Digest != r.of.Digest || now.Size != r.of.Size || now.Chunks != r.of.Chunks || now.Options != r.of.Options:
		return missing
	}
	r.of, r.from, r.skip = &now.Object, 0, 0
	if now.pieces == nil {
		r.skip = r.read
	}
	return nil
}

// Read implements io.Reader.
func (r *Reader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		var err error
		if r.rest, err = r.Next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Pieces yields what Next returns, up to the first error, which is not io.EOF.
func (r *Reader) Pieces() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			piece, err := r.Next()
			if err == io.EOF { //nolint:errorlint // a wrapped one is a failure
				return
			}
			if !yield(piece, err) || err != nil {
				return
			}
		}
	}
}

// Whole returns the object's bytes.
func (r *Reader) Whole() ([]byte, error) {
	out := make([]byte, 0, min(r.of.Size, aheadBytes)) // an entry may say anything
	for piece, err := range r.Pieces() {
		if err != nil {
			return nil, err
		}
		out = append(out, piece...)
	}
	return out, nil
}

// Piece returns one piece of an object with an entry that lists their sequences ([MetaPieces]), from
// 0. The error is a *[DamagedError] if the store does not have it.
func (s Store) Piece(ctx context.Context, o *Object, n int64) ([]byte, error) {
	if _, ok := o.PieceSeq(n); !ok {
		return nil, fmt.Errorf("reading the object %s: its entry lists no piece %d", o.Name, n)
	}
	got, err := s.pieces(ctx, o, n, 0, 1)
	if err != nil {
		return nil, err
	}
	piece := got[0].Data
	if want := min(o.Options.PieceBytes, o.Size-n*o.Options.PieceBytes); int64(len(piece)) != want {
		return nil, &DamagedError{Name: o.Name, How: fmt.Sprintf("piece %d has %d bytes, and not %d", n, len(piece), want)}
	}
	return piece, nil
}

// pieces returns at least one and at most so many pieces of an object, from the nth on. Without a
// list of the sequences it returns what comes from a sequence on.
func (s Store) pieces(ctx context.Context, o *Object, n int64, from uint64, most int) ([]streams.Message, error) {
	if seq, ok := o.PieceSeq(n); ok {
		from = seq
	}
	q := streams.GetRequest{Seq: max(from, 1), Next: Pieces(s.bucket, o.NUID), Batch: most, MaxBytes: streams.BatchBytes}
	got, err := s.conn.Direct(ctx, Stream(s.bucket), q)
	if err == nil && o.listed(n, got) == 0 { // by a copy that lags
		var m streams.Message
		m, err = s.conn.Leader(ctx, Stream(s.bucket), streams.GetRequest{Seq: q.Seq, Next: q.Next})
		got = []streams.Message{m}
	}
	if err != nil && !errors.Is(err, streams.ErrNoMessage) {
		return nil, err
	}
	if err == nil {
		got = got[:o.listed(n, got)]
	}
	if err != nil || len(got) == 0 {
		return nil, &DamagedError{Name: o.Name, How: fmt.Sprintf("piece %d is missing", n), Missing: true}
	}
	return got, nil
}

// listed returns how many messages, from the first one on, are the pieces of an object from the nth
// on: all, if its entry does not list them.
func (o *Object) listed(n int64, got []streams.Message) int {
	if o.pieces == nil {
		return len(got)
	}
	for i, m := range got {
		if m.Seq != o.pieces.at(n+int64(i)) {
			return i
		}
	}
	return len(got)
}

// PieceSeq returns the sequence of a piece, from 0, if the entry lists it.
func (o *Object) PieceSeq(n int64) (uint64, bool) {
	if n < 0 || n >= o.Chunks {
		return 0, false
	}
	seq := o.pieces.at(n)
	return seq, seq != 0
}
