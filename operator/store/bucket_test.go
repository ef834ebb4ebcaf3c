package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/operator/store"
)

// bucketStore is a store with a compressed bucket that does not wait for the disk, of which a message
// replaces the one before it under its key, and whose blocks the server compacts.
type bucketStore struct {
	*packedStore
	random *rand.Rand
	keys   []string // of each message
}

const bucketKeys = 12

func newBucketStore(t *testing.T) *bucketStore {
	return &bucketStore{packedStore: newPackedStore(t), random: rand.New(rand.NewPCG(3, 4))}
}

func (b *bucketStore) create(js jetstream.JetStream) {
	b.Helper()
	_, err := js.CreateStream(b.Context(), jetstream.StreamConfig{
		Name: packedName, Subjects: []string{"packed.*"}, Compression: jetstream.S2Compression, PersistMode: jetstream.AsyncPersistMode,
		MaxMsgsPerSubject: 1, AllowRollup: true, DenyDelete: true, AllowDirect: true,
		MaxBytes: 125_000, Discard: jetstream.DiscardNew, // for small blocks
	})
	b.must(err)
}

// put stores the next message, under any key.
func (b *bucketStore) put(js jetstream.JetStream, size int) {
	b.Helper()
	key := fmt.Sprint("packed.", b.random.IntN(bucketKeys))
	_, err := js.Publish(b.Context(), key, content(len(b.size)+1, size))
	b.must(err)
	b.size, b.keys = append(b.size, size), append(b.keys, key)
}

// shows fails the test unless each key has a message that was stored under it, and the stream no
// other. It returns the sequences.
func (b *bucketStore) shows(js jetstream.JetStream) map[string]uint64 {
	b.Helper()
	stream, err := js.Stream(b.Context(), packedName)
	b.must(err)
	has := map[string]uint64{}
	for n := range bucketKeys {
		key := fmt.Sprint("packed.", n)
		m, err := stream.GetLastMsgForSubject(b.Context(), key)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		b.must(err)
		var number int
		if _, err := fmt.Sscanf(string(m.Data), "message %d.", &number); err != nil || number > len(b.keys) || b.keys[number-1] != key || !bytes.Equal(m.Data, content(number, b.size[number-1])) {
			b.Fatalf("%s has what was never stored there: %.40q, %v", key, m.Data, err)
		}
		has[key] = m.Sequence
	}
	if state := stream.CachedInfo().State; state.Msgs != uint64(len(has)) {
		b.Fatalf("it has %d messages, and %d can be read", state.Msgs, len(has))
	}
	return has
}

// A bucket is compressed, and compacted, while it is written. Whatever a kill leaves of it, and
// whatever a power cut takes of its last block, what is left can be read, and what is written after
// it stays.
func TestOpen_BucketAfterACrash(t *testing.T) {
	b := newBucketStore(t)
	left := make([]string, 4)
	b.serve(b.dir, func(js jetstream.JetStream) {
		b.create(js)
		for n := range left {
			for size := 0; size < 64_000; { // some blocks
				one := 18 + b.random.IntN(4000)
				b.put(js, one)
				size += one
			}
			left[n] = t.TempDir()
			b.copyWhileServed(left[n])
		}
	})
	packed := false
	for n, dir := range left {
		all, err := filepath.Glob(filepath.Join(dir, "jetstream", "$G", "streams", packedName, "msgs", "*.blk"))
		b.must(err)
		for _, block := range all {
			packed = packed || isPacked(block)
		}
		for name, part := range map[string]float64{"killed": 1, "half of the last block": 0.5, "all of the last block": 0, "the block": -1} {
			t.Run(fmt.Sprint(n, " ", name), func(t *testing.T) { b.crashed(t, dir, part) })
		}
	}
	if !packed {
		t.Error("no block was compressed")
	}
}

// crashed starts a server, three times, on a copy of which a part of the last block is left.
func (b *bucketStore) crashed(t *testing.T, left string, part float64) {
	one, packed := *b, *b.packedStore
	one.packedStore, packed.T = &packed, t
	dir := t.TempDir()
	one.must(os.CopyFS(dir, os.DirFS(left)))
	messages := filepath.Join(dir, "jetstream", "$G", "streams", packedName, "msgs")
	last, size := "", int64(0)
	for n := 1; n < 100; n++ { // compacted ones are gone
		if info, err := os.Stat(filepath.Join(messages, fmt.Sprint(n, ".blk"))); err == nil {
			last, size = filepath.Join(messages, info.Name()), info.Size()
		}
	}
	if part < 0 {
		one.must(os.Remove(last))
	} else {
		one.must(os.Truncate(last, int64(part*float64(size))))
	}
	var before map[string]uint64
	for range 3 {
		_ = os.Remove(filepath.Join(messages, "index.db")) // written at a clean end only
		_, err := store.Open(t.Context(), one.config(dir))
		one.must(err)
		report, err := store.Check(t.Context(), one.config(dir))
		if err != nil || len(report.Damages) > 0 {
			t.Fatalf("after the start the check says %v, %v", report.Damages, err)
		}
		one.serve(dir, func(js jetstream.JetStream) {
			has := one.shows(js)
			for key, seq := range before {
				if has[key] != seq {
					t.Fatalf("%s had message %d, and has %d", key, seq, has[key])
				}
			}
			for range 4 {
				one.put(js, 500)
			}
			before = one.shows(js)
		})
	}
}

// A bit is flipped in a block that is not compressed. The server would remove what follows it: only
// what is damaged is lost, and named.
func TestOpen_DamagedBlockThatIsNotCompressed(t *testing.T) {
	b := newBucketStore(t)
	var before map[string]uint64
	b.serve(b.dir, func(js jetstream.JetStream) {
		b.create(js)
		for len(before) < bucketKeys {
			b.put(js, 100)
			before = b.shows(js)
		}
	})
	block := b.blocks(b.dir)[0]
	raw := must(os.ReadFile(block))
	raw[len(raw)/2] ^= 0x40
	b.must(os.WriteFile(block, raw, 0o600))
	opened := must(store.Open(t.Context(), b.config(b.dir)))
	if gone := opened.DerivedGone(); len(gone) != 1 || gone[0].Stream != packedName {
		t.Errorf("the start says %v", gone)
	}
	b.serve(b.dir, func(js jetstream.JetStream) {
		lost := 0
		for key, seq := range b.shows(js) {
			if before[key] != seq {
				lost++
			}
			delete(before, key)
		}
		if lost += len(before); lost > 1 {
			t.Errorf("%d messages are lost with one bit", lost)
		}
	})
}
