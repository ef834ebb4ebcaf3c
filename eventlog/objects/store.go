package objects

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
)

// Store is a bucket of objects. It is safe for concurrent use.
type Store struct {
	conn   *streams.Conn
	bucket string
}

// On returns a bucket, by its whole name, that a connection leads to.
func On(conn *streams.Conn, bucket string) Store { return Store{conn: conn, bucket: bucket} }

// ErrReplaced means that another writer replaced or dropped the object first. Nothing was stored.
var ErrReplaced = errors.New("another writer has replaced the object meanwhile; read it, and write again if it still differs")

// Put stores what it reads to the end as the object of a name, in pieces of pieceBytes, and has
// what it replaces overwritten. The error is [ErrReplaced], or says what failed. What a Put that
// fails has written is removed, unless ctx has ended, or the server did not say whether it has
// stored the entry: then the object is there, whole, or the old one is.
func (s Store) Put(ctx context.Context, name string, metadata map[string]string, pieceBytes int, from io.Reader) error {
	if err := s.put(ctx, name, metadata, max(pieceBytes, 1), from); err != nil {
		return fmt.Errorf("writing the object %s: %w", name, err)
	}
	return nil
}

func (s Store) put(ctx context.Context, name string, metadata map[string]string, pieceBytes int, from io.Reader) error {
	own, err := tokens(name)
	if err != nil {
		return err
	}
	old, last, err := s.newest(ctx, name)
	if err != nil {
		return err
	}
	o := Object{
		Name: name, Metadata: metadata, Options: Options{PieceBytes: int64(pieceBytes)}, ModTime: NoTime, NUID: own + "." + s.conn.NewID(),
	}
	first, err := s.putPieces(ctx, &o, from)
	seq, stored := uint64(0), streams.Conflict
	if err == nil {
		seq, stored, err = s.putEntry(o, strconv.FormatUint(last, 10))
	}
	switch {
	case stored == streams.Unknown:
		return err
	case err != nil:
		return errors.Join(err, s.erase(ctx, Pieces(s.bucket, o.NUID), 0))
	}
	older := s.erase(ctx, Pieces(s.bucket, own+".>"), cmp.Or(first, seq)) // an empty object has no pieces
	return errors.Join(older, s.eraseForeign(ctx, old, own))
}

// putPieces stores the pieces of an object, and notes how many and what they are. It returns the
// sequence of the first one.
func (s Store) putPieces(ctx context.Context, o *Object, from io.Reader) (first uint64, err error) {
	sum, piece := sha256.New(), make([]byte, o.Options.PieceBytes)
	for {
		n, err := 0, error(nil)
		for n < len(piece) && err == nil {
			var more int
			more, err = from.Read(piece[n:])
			n += more
		}
		over := err == io.EOF //nolint:errorlint // a wrapped one is a failure
		if err != nil && !over {
			return first, err
		}
		if n > 0 {
			seq, _, err := s.publish(&nats.Msg{Subject: Pieces(s.bucket, o.NUID), Data: piece[:n]})
			if err != nil {
				return first, err
			}
			if first == 0 {
				first = seq
			}
			sum.Write(piece[:n])
			o.Size, o.Chunks = o.Size+int64(n), o.Chunks+1
		}
		if over {
			o.Digest = DigestOf(sum.Sum(nil))
			return first, nil
		}
		if ctx.Err() != nil {
			return first, context.Cause(ctx)
		}
	}
}

// putEntry stores an entry, if the last one is at a sequence; "": in any case. It returns what
// publish does.
func (s Store) putEntry(o Object, last string) (uint64, streams.Outcome, error) {
	m, err := o.Message(s.bucket)
	if err != nil {
		return 0, streams.Conflict, err
	}
	if last != "" {
		m.Header.Set(streams.HeaderExpected, last)
	}
	return s.publish(m)
}

// publish stores a message, and returns its sequence. The error is ErrReplaced if its condition does
// not hold.
func (s Store) publish(m *nats.Msg) (uint64, streams.Outcome, error) {
	ack, err := s.conn.Publish(m)
	outcome := streams.Classify(err, ack.Error)
	switch {
	case outcome == streams.Conflict, outcome == streams.InFlight:
		err = ErrReplaced
	case err == nil && ack.Error != nil:
		err = ack.Error
	}
	return ack.Seq, outcome, err
}

// newest returns the entry of an object, nil if there is none, and its sequence, or that of the
// marker of its deletion.
func (s Store) newest(ctx context.Context, name string) (*Object, uint64, error) {
	m, err := s.conn.Leader(ctx, Stream(s.bucket), streams.GetRequest{Last: Entry(s.bucket, name)})
	if errors.Is(err, streams.ErrNoMessage) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	o, ok := Parse(m.Data)
	if !ok {
		o = nil
	}
	return o, m.Seq, nil
}

// Drop removes an object, and has the server overwrite all pieces that were ever written of it. A
// marker stays in place of the entry, for those who follow the entries. It is no error if there is
// nothing.
func (s Store) Drop(ctx context.Context, name string) error {
	own, err := tokens(name)
	if err != nil {
		return err
	}
	old, _, err := s.newest(ctx, name)
	if err == nil {
		err = errors.Join(s.erase(ctx, Pieces(s.bucket, own+".>"), 0), s.eraseForeign(ctx, old, own))
	}
	if err == nil && old != nil {
		_, _, err = s.putEntry(Removed(name, old.NUID), "")
	}
	if err != nil {
		return fmt.Errorf("dropping the object %s: %w", name, err)
	}
	return nil
}

// ErasePieces has the server overwrite the pieces of all objects under a name, those of "acme/T-1/2"
// with "acme/T-1", whether there is an entry that names them or not.
func (s Store) ErasePieces(ctx context.Context, under string) error {
	own, err := tokens(under)
	if err == nil {
		err = s.erase(ctx, Pieces(s.bucket, own+".>"), 0)
	}
	if err != nil {
		return fmt.Errorf("erasing what is left of %s: %w", under, err)
	}
	return nil
}

// WithPieces returns the names of the objects directly under a name of which there are pieces,
// sorted: also of those that have no entry.
func (s Store) WithPieces(ctx context.Context, under string) ([]string, error) {
	own, err := tokens(under)
	if err != nil {
		return nil, err
	}
	prefix := Pieces(s.bucket, own+".")
	var info *jetstream.StreamInfo
	stream, err := s.conn.Stream(ctx, Stream(s.bucket))
	if err == nil {
		err = streams.Insist(ctx, func() error {
			info, err = stream.Info(ctx, jetstream.WithSubjectFilter(prefix+"*.*"))
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("listing what is stored of %s: %w", under, err)
	}
	var out []string
	for subject := range info.State.Subjects {
		last, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		out = append(out, under+"/"+last)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (s Store) erase(ctx context.Context, subject string, before uint64) error {
	return s.conn.Erase(ctx, Stream(s.bucket), subject, before)
}

// eraseForeign overwrites the pieces of an entry that another program has written.
func (s Store) eraseForeign(ctx context.Context, o *Object, own string) error {
	if o == nil || strings.HasPrefix(o.NUID, own+".") {
		return nil
	}
	if subject, err := tokens(o.NUID); err != nil || subject != o.NUID {
		return nil //nolint:nilerr // it names no pieces of an object
	}
	return s.erase(ctx, Pieces(s.bucket, o.NUID), 0)
}
