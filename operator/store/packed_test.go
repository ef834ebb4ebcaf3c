package store_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/store"
)

const packedName = "PACKED"

// packedStore is a store with a derived stream that the server compresses and stores without
// waiting for the disk.
type packedStore struct {
	*testing.T
	dir  string
	size []int // of each message
}

func newPackedStore(t *testing.T) *packedStore { return &packedStore{T: t, dir: t.TempDir()} }

func (p *packedStore) config(dir string) store.Config {
	return store.Config{Dir: dir, Log: "LOG", Derived: func(string) bool { return true }}
}

func (p *packedStore) blocks(dir string) []string {
	p.Helper()
	var out []string
	for n := 1; ; n++ {
		name := filepath.Join(dir, "jetstream", "$G", "streams", packedName, "msgs", fmt.Sprint(n, ".blk"))
		if _, err := os.Stat(name); err != nil {
			return out
		}
		out = append(out, name)
	}
}

// serve runs a server on a folder while do runs.
func (p *packedStore) serve(dir string, do func(js jetstream.JetStream)) {
	p.Helper()
	s := natstest.Start(p, natstest.StoreDir(dir))
	nc := natstest.Connect(p, s)
	js, err := jetstream.New(nc)
	p.must(err)
	do(js)
	nc.Close()
	s.Shutdown()
}

func (p *packedStore) must(errs ...error) {
	p.Helper()
	for _, err := range errs {
		if err != nil {
			p.Fatal(err)
		}
	}
}

// create creates the stream.
func (p *packedStore) create(js jetstream.JetStream) {
	p.Helper()
	_, err := js.CreateStream(p.Context(), jetstream.StreamConfig{
		Name: packedName, Subjects: []string{"packed"}, Compression: jetstream.S2Compression, PersistMode: jetstream.AsyncPersistMode,
		MaxBytes: 125_000, Discard: jetstream.DiscardNew, // for small blocks
	})
	p.must(err)
}

// content is the data of message n of a size, which compresses well.
func content(n, size int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "message %08d. ", n), size/18+1)[:size]
}

// publish stores the next message.
func (p *packedStore) publish(js jetstream.JetStream, size int) {
	p.Helper()
	_, err := js.PublishMsg(p.Context(), &nats.Msg{Subject: "packed", Data: content(len(p.size)+1, size)})
	p.must(err)
	p.size = append(p.size, size)
}

// isPacked reports whether the server has compressed a block.
func isPacked(name string) bool {
	raw, err := os.ReadFile(name)
	return err == nil && bytes.HasPrefix(raw, []byte("cmp"))
}

// holds fails the test unless the stream has the first messages, up to the last that it has, and
// each is as it was sent. It returns how many there are.
func (p *packedStore) holds(js jetstream.JetStream) int {
	p.Helper()
	stream, err := js.Stream(p.Context(), packedName)
	p.must(err)
	state := stream.CachedInfo().State
	if state.Msgs != state.LastSeq || state.Msgs > 0 && state.FirstSeq != 1 {
		p.Fatalf("it has %d messages from %d to %d", state.Msgs, state.FirstSeq, state.LastSeq)
	}
	for n := 1; n <= int(state.LastSeq); n++ {
		m, err := stream.GetMsg(p.Context(), uint64(n))
		if err != nil || !bytes.Equal(m.Data, content(n, p.size[n-1])) {
			p.Fatalf("message %d of %d: %v", n, state.LastSeq, err)
		}
	}
	return int(state.LastSeq)
}

// crash starts a server on a copy of the store as a crash left it, writes to it, starts it again
// as after a crash, and expects everything to be there. Skein checks the store first each time.
func (p *packedStore) crash(least int, cut func(dir string)) {
	p.Helper()
	dir := p.TempDir()
	p.must(os.CopyFS(dir, os.DirFS(p.dir)))
	cut(dir)
	sent := p.size
	defer func() { p.size = sent }()
	for n := range 3 {
		_, err := store.Open(p.Context(), p.config(dir))
		p.must(err)
		p.serve(dir, func(js jetstream.JetStream) {
			has := p.holds(js)
			if has < least {
				p.Fatalf("start %d: it has %d messages, and %d were on the disk", n+1, has, least)
			}
			p.size = append([]int(nil), p.size[:has]...)
			p.publish(js, 100)
			least = len(p.size)
		})
		p.must(os.RemoveAll(filepath.Join(filepath.Dir(p.blocks(dir)[0]), "index.db"))) // written at a clean end only
		report, err := store.Check(p.Context(), p.config(dir))
		if err != nil || len(report.Damages) > 0 {
			p.Fatalf("start %d: the check: %v, %v", n+1, report.Damages, err)
		}
	}
}

// A power cut takes what was written last, while the blocks before it are compressed already, which
// the server has synced. What is written after it goes behind the last block, and that one must
// take it.
func TestOpen_PowerCutBehindACompressedBlock(t *testing.T) {
	p := newPackedStore(t)
	p.serve(p.dir, func(js jetstream.JetStream) {
		p.create(js)
		for range 7 {
			p.publish(js, 4000)
		}
		p.publish(js, 2000)
		p.publish(js, 4000) // does not fit into the first block, and a small one would
		p.publish(js, 1000)
		natstest.Eventually(t, "the first block to be compressed", func() bool { return isPacked(p.blocks(p.dir)[0]) })
	})
	if n := len(p.blocks(p.dir)); n != 2 {
		t.Fatalf("%d blocks", n)
	}
	whole, err := os.Stat(p.blocks(p.dir)[1])
	p.must(err)
	for name, left := range map[string]int64{
		"all of the last block": 0, "all but a part of a record": 100, "half of the last block": whole.Size() / 2,
		"the last record": 4100, "nothing": whole.Size(), "the block": -1,
	} {
		t.Run(name, func(t *testing.T) {
			at := *p
			at.T = t
			at.crash(8, func(dir string) {
				last := p.blocks(dir)[1]
				if left < 0 {
					at.must(os.Remove(last))
				} else {
					at.must(os.Truncate(last, left))
				}
				at.must(os.RemoveAll(filepath.Join(filepath.Dir(last), "index.db")))
			})
		})
	}
}

// A server that is killed at any moment leaves blocks that are compressed, blocks that are being
// compressed, and a last one that is written in part. A copy of the files stands for what is left:
// unlike a power cut, a kill takes nothing that was handed to the system.
func TestOpen_KilledWhileBlocksAreCompressed(t *testing.T) {
	p := newPackedStore(t)
	left := make([]string, 3)
	p.serve(p.dir, func(js jetstream.JetStream) {
		p.create(js)
		rnd := rand.New(rand.NewPCG(1, 2))
		for n := range left {
			for size := 0; size < 32_000; { // more than a block
				one := 1 + rnd.IntN(4000)
				p.publish(js, one)
				size += one
			}
			left[n] = t.TempDir()
			p.copyWhileServed(left[n])
		}
	})
	for _, dir := range left {
		at := *p
		at.dir = dir
		at.crash(0, func(dir string) {
			_ = os.Remove(filepath.Join(filepath.Dir(p.blocks(dir)[0]), "index.db"))
		})
	}
}

// copyWhileServed copies the store. The server replaces files meanwhile.
func (p *packedStore) copyWhileServed(to string) {
	p.Helper()
	natstest.Eventually(p, "a copy of the store", func() bool {
		p.must(os.RemoveAll(to), os.MkdirAll(to, 0o700))
		return os.CopyFS(to, os.DirFS(p.dir)) == nil
	})
}

// A stream is told to compress while it is written, as Skein does at the start of a store of an
// earlier build. nats-server 2.15 does so from its next start on. Blocks of both kinds are read.
func TestOpen_StreamIsChangedWhileItServes(t *testing.T) {
	p := newPackedStore(t)
	config := func(js jetstream.JetStream, compression jetstream.StoreCompression) {
		stream, err := js.Stream(t.Context(), packedName)
		p.must(err)
		cfg := stream.CachedInfo().Config
		cfg.Compression = compression
		_, err = js.UpdateStream(t.Context(), cfg)
		p.must(err)
	}
	fill := func(js jetstream.JetStream) {
		for range 9 { // more than a block
			p.publish(js, 3900)
		}
		if has := p.holds(js); has != len(p.size) {
			t.Fatalf("%d messages of %d", has, len(p.size))
		}
	}
	p.serve(p.dir, func(js jetstream.JetStream) {
		p.create(js)
		config(js, jetstream.NoCompression)
	})
	p.serve(p.dir, func(js jetstream.JetStream) {
		fill(js)
		config(js, jetstream.S2Compression)
		fill(js)
	})
	before := len(p.blocks(p.dir))
	p.serve(p.dir, func(js jetstream.JetStream) {
		fill(js)
		natstest.Eventually(t, "a block to be compressed", func() bool { return isPacked(p.blocks(p.dir)[before-1]) })
	})
	if list := p.blocks(p.dir); isPacked(list[0]) || isPacked(list[len(list)-1]) {
		t.Error("the first or the last block is compressed")
	}
	p.crash(len(p.size), func(string) {})
}

// Repair keeps every record of a compressed block that can be read.
func TestRepair_CompressedBlockIsDamaged(t *testing.T) {
	p := newPackedStore(t)
	p.serve(p.dir, func(js jetstream.JetStream) {
		p.create(js)
		for range 20 {
			p.publish(js, 4000)
		}
		natstest.Eventually(t, "the first block to be compressed", func() bool { return isPacked(p.blocks(p.dir)[0]) })
	})
	copied := t.TempDir()
	p.must(os.CopyFS(copied, os.DirFS(p.dir)))
	first := p.blocks(p.dir)[0]
	raw, err := os.ReadFile(first)
	p.must(err)
	raw[len(raw)/2] ^= 0x40
	p.must(os.WriteFile(first, raw, 0o600))
	report, err := store.Check(t.Context(), p.config(p.dir))
	if err != nil || len(report.Damages) == 0 {
		t.Fatalf("the check says %v, %v", report, err)
	}
	cfg := p.config(p.dir)
	cfg.Derived = func(string) bool { return false } // else it is made again from the log
	if _, err := store.Repair(t.Context(), store.RepairConfig{Config: cfg, From: []string{copied}}); err != nil {
		t.Fatal(err)
	}
	if report, err := store.Check(t.Context(), p.config(p.dir)); err != nil || len(report.Damages) > 0 {
		t.Fatalf("after the repair the check says %v, %v", report.Damages, err)
	}
	p.crash(len(p.size), func(string) {})
}

// A compressed block of a derived stream that is damaged costs what cannot be read of it. At a start
// after a crash nats-server would remove the stream for it, with the consumers on it.
func TestOpen_DamagedBlockOfADerivedStream(t *testing.T) {
	p := newPackedStore(t)
	p.serve(p.dir, func(js jetstream.JetStream) {
		p.create(js)
		_, err := js.CreateConsumer(t.Context(), packedName, jetstream.ConsumerConfig{Durable: "reader"})
		p.must(err)
		for range 30 {
			p.publish(js, 4000)
		}
		natstest.Eventually(t, "a block in the middle to be compressed", func() bool { return len(p.blocks(p.dir)) > 2 && isPacked(p.blocks(p.dir)[1]) })
	})
	for name, at := range map[string]float64{"its middle": 0.5, "its beginning": 0} {
		t.Run(name, func(t *testing.T) {
			at := int(at * float64(len(must(os.ReadFile(p.blocks(p.dir)[1])))))
			one := *p
			one.T, one.dir = t, t.TempDir()
			one.must(os.CopyFS(one.dir, os.DirFS(p.dir)))
			damaged := one.blocks(one.dir)[1]
			raw := must(os.ReadFile(damaged))
			raw[at] ^= 0x40
			one.must(os.WriteFile(damaged, raw, 0o600))
			report := must(store.Check(t.Context(), one.config(one.dir)))
			if len(report.Damages) != 1 || report.Damages[0].To == 0 {
				t.Fatalf("the check says %v", report.Damages)
			}
			opened := must(store.Open(t.Context(), one.config(one.dir)))
			if gone := opened.DerivedGone(); len(gone) != 1 || gone[0].File != report.Damages[0].File {
				t.Errorf("the start says %v", gone)
			}
			one.serve(one.dir, func(js jetstream.JetStream) {
				stream := must(js.Stream(t.Context(), packedName))
				must(stream.Consumer(t.Context(), "reader"))
				if state := stream.CachedInfo().State; state.LastSeq != uint64(len(p.size)) {
					t.Fatalf("it ends at %d of %d", state.LastSeq, len(p.size))
				}
				lost := report.Damages[0]
				for seq := uint64(1); seq <= uint64(len(p.size)); seq++ {
					if _, err := stream.GetMsg(t.Context(), seq); err != nil && (seq < lost.From || seq > lost.To) {
						t.Errorf("message %d, which is not among those that are lost (%s): %v", seq, lost.Range(), err)
					}
				}
			})
		})
	}
}

// must returns a value that comes without an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
