package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
	"github.com/skein-threads/skein/quota"
)

// touchAfter is the age from which a writer that needs an object writes its entry again. The
// collector spares objects with young entries.
const touchAfter = 10 * time.Minute

// Store is the object store of contents. It is safe for concurrent use.
type Store struct {
	js      jetstream.JetStream
	api     string // prefix of its API subjects
	stream  jetstream.Stream
	bucket  string
	objects objects.Store
	now     func() time.Time
	writing *streams.Writing

	mu    sync.Mutex                          // guards the fields below
	known *lru.Cache[string, *objects.Object] // by name; each has the size 1
}

// ackTimeout bounds the time to store one piece.
const ackTimeout = 20 * time.Second

// Open returns the store on the log's connection. The log's Ensure has created it.
func Open(ctx context.Context, log *eventlog.Log) (*Store, error) {
	js, err := jetstream.NewWithAPIPrefix(log.Conn(), log.Config().API, jetstream.WithPublishAsyncTimeout(ackTimeout))
	if err != nil {
		return nil, fmt.Errorf("open content store: JetStream: %w", err)
	}
	bucket := log.Config().Names.Bucket(assets.FileBucket)
	var stream jetstream.Stream
	err = log.Streams().Patiently(ctx, func(ctx context.Context) (err error) { // retried, because another process may have just created the store
		stream, err = js.Stream(ctx, objects.Stream(bucket))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open content store: %w", err)
	}
	return &Store{
		js: js, api: log.Config().API, stream: stream, bucket: bucket, objects: objects.On(log.Streams(), bucket),
		now: time.Now, writing: log.Config().Writing, known: lru.New[string, *objects.Object](knownAtMost),
	}, nil
}

// NotStoredError says that content is not in the store.
type NotStoredError struct{ Tenant, Digest string }

func (e *NotStoredError) Error() string {
	return fmt.Sprintf("read content %s of tenant %s: it is not in the store", e.Digest, e.Tenant)
}

// DamagedError says that stored content does not match its digest.
type DamagedError struct {
	Tenant, Digest string
	How            string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("read content %s of tenant %s: it is damaged: %s", e.Digest, e.Tenant, e.How)
}

// Keep stores content for a tenant, and returns when it is durable. It
// implements commands.Contents.
func (s *Store) Keep(ctx context.Context, tenant string, content []byte) (events.FileContent, error) {
	return s.keep(ctx, tenant, "", content)
}

// KeepPage stores a page of a thread's history. The page is erased with that thread unless another
// thread names it. It implements commands.Contents.
func (s *Store) KeepPage(ctx context.Context, tenant, thread string, page []byte) error {
	_, err := s.keep(ctx, tenant, thread, page)
	return err
}

func (s *Store) keep(ctx context.Context, tenant, of string, content []byte) (events.FileContent, error) {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	switch o, _, err := s.hold(ctx, tenant, digest); {
	case err != nil:
		return events.FileContent{}, err
	case o != nil:
		return contentOf(o, digest), nil
	}
	w := s.newWriter(tenant)
	w.historyOf = of
	for rest := content; len(rest) > 0; {
		piece := rest[:min(len(rest), events.FilePieceBytes)]
		rest = rest[len(piece):]
		if err := w.put(ctx, piece); err != nil {
			w.drop(ctx)
			return events.FileContent{}, err
		}
	}
	return w.finish(ctx)
}

// Hold reports whether content is stored. If so, it protects the content from the collector for
// long enough that an event can name it. It implements commands.Contents.
func (s *Store) Hold(ctx context.Context, tenant, digest string) (bool, error) {
	o, _, err := s.hold(ctx, tenant, digest)
	return o != nil, err
}

// hold returns stored content, and protects it from the collector for long enough that an event
// can name it. If it is not stored, hold returns nil and the sequence to expect when its first
// entry is published.
func (s *Store) hold(ctx context.Context, tenant, digest string) (*objects.Object, uint64, error) {
	for {
		o, seq, err := s.find(ctx, tenant, digest)
		if o == nil || err != nil {
			return nil, seq, err
		}
		if s.now().Sub(o.Stored) >= touchAfter {
			err = s.publishEntry(ctx, tenant, digest, o.Object, seq)
		}
		if !conflict(err) {
			return &o.Object, seq, err
		}
	}
}

func objectName(tenant, digest string) string { return tenant + "/" + digest }

// find reads the entry of content, nil if there is none, and returns the sequence to expect when
// the next entry is published.
func (s *Store) find(ctx context.Context, tenant, digest string) (*objects.Found, uint64, error) {
	o, err := s.objects.FindNear(quota.Unmeasured(ctx), objectName(tenant, digest))
	var damaged *objects.DamagedError
	switch {
	case errors.As(err, &damaged):
		return nil, 0, &DamagedError{tenant, digest, damaged.How}
	case err != nil:
		return nil, 0, fmt.Errorf("find content: %w", err)
	case o == nil:
		return nil, 0, nil
	case o.Deleted:
		return nil, o.Seq, nil
	}
	return o, o.Seq, nil
}

// publishEntry writes an entry on condition that the previous entry is at seq.
func (s *Store) publishEntry(ctx context.Context, tenant, digest string, e objects.Object, seq uint64) error {
	m, err := e.Message(s.bucket)
	if err != nil {
		return err
	}
	if _, err := s.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(seq)); err != nil {
		return fmt.Errorf("store content entry: %w", err)
	}
	return nil
}

// conflict reports whether another writer has written the entry first.
func conflict(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// knownAtMost bounds the number of cached entries.
const knownAtMost = 4096

// object returns the object of content, from the cache if possible.
func (s *Store) object(ctx context.Context, tenant, digest string) (*objects.Object, error) {
	name := objectName(tenant, digest)
	s.mu.Lock()
	o, ok := s.known.Get(name)
	s.mu.Unlock()
	if ok {
		return o, nil
	}
	found, _, err := s.find(ctx, tenant, digest)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, &NotStoredError{tenant, digest}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Put(name, &found.Object, 1)
	return &found.Object, nil
}

func (s *Store) forget(tenant, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Drop(objectName(tenant, digest))
}
