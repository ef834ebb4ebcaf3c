package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
)

// Found is an object, and where its entry is.
type Found struct {
	Object
	Seq    uint64    // of the entry, which the next entry of this object must expect
	Stored time.Time // when the entry was stored
}

// Exists reports whether there is an object: f may be nil, or the marker of a deletion.
func (f *Found) Exists() bool { return f != nil && !f.Deleted }

// Find returns the entry of an object, or the marker of its deletion; nil if there is neither. It is
// never older than what was acknowledged before. A *[DamagedError] says that it cannot be an entry of
// that object.
func (s Store) Find(ctx context.Context, name string) (*Found, error) {
	several, err := s.conn.Replicated(ctx)
	switch {
	case err != nil:
		return nil, err
	case !several:
		return s.FindNear(ctx, name)
	}
	m, err := s.conn.Leader(ctx, Stream(s.bucket), streams.GetRequest{Last: Entry(s.bucket, name)})
	if errors.Is(err, streams.ErrNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found(name, m)
}

// FindNear is Find, but a copy of the store that lags may answer: an object that was just stored may
// be missed, and one that was just replaced or dropped may be found. It spares the leader.
func (s Store) FindNear(ctx context.Context, name string) (*Found, error) {
	got, err := s.conn.Direct(ctx, Stream(s.bucket), streams.GetRequest{Multi: []string{Entry(s.bucket, name)}})
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return found(name, got[0])
}

func found(name string, m streams.Message) (*Found, error) {
	o, err := Decode(m.Data)
	switch {
	case err != nil:
		return nil, &DamagedError{Name: name, How: err.Error()}
	case o.Name != name || o.NUID == "" && !o.Deleted:
		return nil, &DamagedError{Name: name, How: fmt.Sprintf("its entry is that of %.100q", o.Name)}
	}
	stored, _ := time.Parse(time.RFC3339Nano, m.Header.Get(nats.JSTimeStamp)) // the server writes it
	return &Found{Object: *o, Seq: m.Seq, Stored: stored}, nil
}

// Decode decodes an entry, or the marker of a deletion.
func Decode(data []byte) (*Object, error) {
	var o Object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("decoding its entry: %w", err)
	}
	if o.Deleted {
		return &o, nil
	}
	var err error
	if o.pieces, err = parseSequences(o.Metadata[MetaPieces]); err != nil {
		return nil, fmt.Errorf("decoding its entry: %w", err)
	}
	if o.pieces != nil && o.pieces.Count() != o.Chunks || o.Chunks < 0 || o.Size < 0 {
		return nil, errors.New("decoding its entry: fields contradict each other")
	}
	return &o, nil
}

// DamagedError says that an object is not as its entry says.
type DamagedError struct {
	Name    string
	How     string
	Missing bool // a piece is missing: the object was dropped or replaced meanwhile, or has lost it
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the object %s is damaged: %s", e.Name, e.How)
}
