package blocks_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/blocks"
)

// written returns the blocks of a stream that a real server has written, by file,
// and how many messages there are.
func written(t *testing.T, messages int) [][]byte {
	t.Helper()
	dir := t.TempDir()
	s := natstest.Start(t, natstest.StoreDir(dir))
	nc := natstest.Connect(t, s)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "MINE", Subjects: []string{"mine.>"}, Compression: jetstream.S2Compression})
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		m := nats.NewMsg(fmt.Sprintf("mine.%d", i%7))
		if i%3 > 0 {
			m.Header.Set("Skein-Version", fmt.Sprint(i))
		}
		m.Data = text(i)
		if _, err := js.PublishMsgAsync(m); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 { // more outstanding ones would stall on a slow machine
			<-js.PublishAsyncComplete()
		}
	}
	<-js.PublishAsyncComplete()
	for _, seq := range []uint64{3, 4} {
		if err := stream.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.SecureDeleteMsg(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	s.Shutdown()
	names, err := filepath.Glob(filepath.Join(dir, "jetstream", "$G", "streams", "MINE", "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(names, func(a, b string) int { return len(a) - len(b) })
	var files [][]byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
	}
	return files
}

// text is the data of a message: different each time, and worth compressing.
func text(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "message %d says so. ", i), 400) }

// Every record of a real store is read, with what was deleted and erased.
func TestScan_ReadsWhatTheServerWrote(t *testing.T) {
	const messages = 1500
	files := written(t, messages)
	if len(files) < 2 {
		t.Fatalf("%d blocks; the test wants a sealed one", len(files))
	}
	seen := map[uint64]blocks.Kind{}
	erased := map[uint64]bool{}
	compressed, last := 0, uint64(0)
	for i, f := range files {
		s := blocks.NewReader("MINE", uint32(i+1)).Scan(f, func(rec blocks.Record) {
			seen[rec.Seq] = rec.Kind
			if rec.Kind == blocks.Erased {
				erased[rec.Seq] = true
			}
			if rec.Kind != blocks.Message {
				return
			}
			n := int(rec.Seq) - 1
			headers, data := rec.Body()
			if !bytes.Equal(data, text(n)) || rec.Subject != fmt.Sprintf("mine.%d", n%7) || bytes.Contains(headers, fmt.Appendf(nil, "Skein-Version: %d\r\n", n)) != (n%3 > 0) {
				t.Fatalf("record %d: subject %s, headers %q, %d bytes", rec.Seq, rec.Subject, headers, len(data))
			}
		})
		if len(s.Damages) > 0 {
			t.Errorf("block %d: %v", i, s.Damages)
		}
		if s.Compressed {
			compressed++
		}
		last = max(last, s.Last)
	}
	if len(seen) != messages || compressed == 0 || last != messages {
		t.Errorf("%d sequences of %d, up to %d; %d compressed blocks", len(seen), messages, last, compressed)
	}
	if !erased[6] || seen[6] != blocks.Tombstone || seen[3] != blocks.Tombstone || len(erased) != 1 {
		t.Errorf("erased are %v; the erased message is %v, the deleted one %v", erased, seen[6], seen[3])
	}
}

// Whatever bit of a sealed block is flipped, it is found, unless the block says the same with it,
// and nearly all of its records are read all the same.
func TestScan_FlippedBits(t *testing.T) {
	files := written(t, 1500)
	block := files[0]
	r := blocks.NewReader("MINE", 1)
	whole := r.Scan(block, nil)
	if !whole.Compressed || whole.Messages < 500 {
		t.Fatalf("%+v", whole)
	}
	texts := make([][]byte, 1500)
	for i := range texts {
		texts[i] = text(i)
	}
	var said []byte
	for i := 0; i < len(block); i += len(block)/150 + 1 {
		damaged := bytes.Clone(block)
		damaged[i] ^= 1 << (i % 8)
		got := r.Scan(damaged, func(rec blocks.Record) {
			if rec.Kind != blocks.Message {
				return
			}
			_, data := rec.Body()
			said = append(append(said[:0], rec.Subject...), data...)
			if !bytes.HasSuffix(said, texts[rec.Seq-1]) {
				t.Fatalf("byte %d: record %d is not what was written", i, rec.Seq)
			}
		})
		same := got.Messages == whole.Messages && got.Records == whole.Records // a copy of what is there twice
		if len(got.Damages) == 0 && !same || len(got.Damages) > 0 && got.Damages[0].Torn {
			t.Errorf("byte %d of %d: %+v", i, len(block), got)
		}
		if i > 16 && got.Messages < whole.Messages/2 {
			t.Errorf("byte %d: only %d of %d messages were read", i, got.Messages, whole.Messages)
		}
	}
}

// The checksum of a record does not cover the length of its headers. A length that the record has no
// room for is damage; one that ends in the middle of something is, where the block is damaged.
func TestScan_LengthOfHeaders(t *testing.T) {
	headers, data := []byte("NATS/1.0\r\nA: b\r\n\r\n"), []byte(`{"text":"what was said"}`)
	block := func(index uint32, from []byte) []byte {
		r := blocks.NewReader("MINE", index)
		b := r.Move(nil, blocks.NewMessage(1, 1e18, "mine.1", from, data))
		return r.Move(b, blocks.NewMessage(2, 1e18, "mine.2", from, data))
	}
	const length = 22 + len("mine.1") // where the length of the first record's headers is
	scan := func(raw []byte) (s blocks.Summary, bodies []string) {
		s = blocks.NewReader("MINE", 1).Scan(raw, func(r blocks.Record) {
			_, data := r.Body()
			bodies = append(bodies, string(data))
		})
		return s, bodies
	}
	long := block(1, headers)
	long[length+1] ^= 1
	if s, bodies := scan(long); len(s.Damages) != 1 || s.Damages[0].Before != 2 || !slices.Equal(bodies, []string{string(data)}) {
		t.Errorf("longer than the record: %+v, %q", s, bodies)
	}
	short := block(1, headers)
	short[length] ^= 1
	packed := append([]byte("cmp\x01"), binary.AppendUvarint(nil, uint64(len(short)))...)
	body := s2.EncodeSnappy(nil, short[:len(short)-8])
	chunk := len(body) + 4
	packed = append(packed, "\xff\x06\x00\x00S2sTwO"...)
	packed = append(packed, 0, byte(chunk), byte(chunk>>8), byte(chunk>>16), 1, 2, 3, 4) // not its checksum
	packed = append(append(packed, body...), short[len(short)-8:]...)
	if s, bodies := scan(packed); len(s.Damages) != 1 || s.Damages[0].Before != 2 || !slices.Equal(bodies, []string{string(data)}) {
		t.Errorf("in a damaged block: %+v, %q", s, bodies)
	}
	if s, bodies := scan(block(1, []byte("of a client's own"))); len(s.Damages) != 0 || len(bodies) != 2 {
		t.Errorf("headers that are none, in a whole block: %+v, %q", s, bodies)
	}
}

// The last block may end within a record, as a killed process leaves it; anything
// else of it that cannot be read is damage.
func TestScan_LastBlock(t *testing.T) {
	files := written(t, 200)
	block := files[len(files)-1]
	r := blocks.NewReader("MINE", uint32(len(files)))
	if s := r.Scan(block, nil); s.Compressed || len(s.Damages) > 0 {
		t.Fatalf("%+v", s)
	}
	var ends []int // of records
	at := 0
	r.Scan(block, func(rec blocks.Record) { at += len(rec.Raw); ends = append(ends, at) })
	middle := ends[len(ends)-2] + 40 // within the last message's record or the tombstone behind it
	for _, c := range []struct {
		name  string
		block []byte
		torn  bool
	}{
		{"cut within the last record", block[:len(block)-5], true},
		{"cut within a head", block[:ends[100]+7], true},
		{"cut between records", block[:ends[100]], false},
		{"zeros behind a cut", append(bytes.Clone(block[:ends[100]+2000]), make([]byte, 6000)...), true},
		{"a flipped bit", flipped(block, ends[100]+100), false},
		{"a flipped bit in a length", flipped(block, ends[100]+1), false},
		{"a flipped bit in the last record", flipped(block, min(middle, len(block)-3)), false},
	} {
		s := r.Scan(c.block, nil)
		switch {
		case c.name == "cut between records" && len(s.Damages) > 0, c.name != "cut between records" && len(s.Damages) != 1:
			t.Errorf("%s: %+v", c.name, s.Damages)
		case len(s.Damages) == 1 && s.Damages[0].Torn != c.torn:
			t.Errorf("%s: torn is %v: %+v", c.name, s.Damages[0].Torn, s.Damages[0])
		}
	}
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 4
	return b
}
