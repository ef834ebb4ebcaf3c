package streams_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// The server serves nothing of a damaged block that is compressed. All else is read, of the whole
// stream and of a subject, also between two such blocks.
func TestReadable_GoesOnBehindDamagedBlocks(t *testing.T) {
	t.Parallel()
	const name, messages = "PACKED", 900
	dir := t.TempDir()
	file := func(block int) string {
		return filepath.Join(dir, "jetstream", "$G", "streams", name, "msgs", fmt.Sprint(block, ".blk"))
	}
	s := natstest.Start(t, natstest.StoreDir(dir))
	nc := natstest.Connect(t, s)
	js, err := jetstream.New(nc)
	fatal(t, err)
	cfg := jetstream.StreamConfig{
		Name: name, Subjects: []string{"packed.>"}, Compression: jetstream.S2Compression, AllowDirect: true,
		MaxBytes: 125_000, // for small blocks
	}
	_, err = js.CreateStream(t.Context(), cfg)
	fatal(t, err)
	cfg.MaxBytes = -1
	_, err = js.UpdateStream(t.Context(), cfg)
	fatal(t, err)
	inBlock := map[int][]uint64{} // sequences
	for n := range messages {
		ack, err := js.Publish(t.Context(), fmt.Sprint("packed.", n%3), bytes.Repeat(fmt.Appendf(nil, "message %d. ", n), 20))
		fatal(t, err)
		block := 1
		for _, err := os.Stat(file(block + 1)); err == nil; _, err = os.Stat(file(block + 1)) {
			block++
		}
		inBlock[block] = append(inBlock[block], ack.Sequence)
	}
	damaged := []int{2, 3, 5}
	if len(inBlock) < 7 {
		t.Fatalf("%d blocks", len(inBlock))
	}
	natstest.Eventually(t, "blocks to be compressed", func() bool {
		return !slices.ContainsFunc(damaged, func(block int) bool {
			raw, err := os.ReadFile(file(block))
			return err != nil || !bytes.HasPrefix(raw, []byte("cmp"))
		})
	})
	nc.Close()
	s.Shutdown()
	lost := map[uint64]bool{}
	for _, block := range damaged {
		raw, err := os.ReadFile(file(block))
		fatal(t, err)
		raw[len(raw)/2] ^= 4
		fatal(t, os.WriteFile(file(block), raw, 0o600))
		for _, seq := range inBlock[block] {
			lost[seq] = true
		}
	}
	nc = natstest.Connect(t, natstest.Start(t, natstest.StoreDir(dir)))
	js, err = jetstream.New(nc)
	fatal(t, err)
	conn, err := streams.OpenOn(nc, js, streams.Config{API: streams.OwnAPI, Replicas: 1, Sample: name, Floors: &streams.Floors{}, Patience: natstest.Patience, AckTimeout: natstest.Patience,
		Damage: func(string, uint64, uint64) error { return nil }})
	fatal(t, err)
	defer conn.Close()
	conn.SetReadTimeout(time.Second)
	for subject, of := range map[string]int{"packed.>": -1, "packed.1": 1} {
		var want, got []uint64
		for n := range messages {
			if seq := uint64(n + 1); !lost[seq] && (of < 0 || n%3 == of) {
				want = append(want, seq)
			}
		}
		for m, err := range conn.Readable(t.Context(), name, subject) {
			fatal(t, err)
			got = append(got, m.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %s are read %v, want %v", subject, got, want)
		}
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
