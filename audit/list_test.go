package audit

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"
	"weak"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// rawThreads publishes messages of the log that no list looks into: some for each of
// the threads from one number to another. It returns the last sequence.
func (h *house) rawThreads(from, to, commits int) uint64 {
	h.t.Helper()
	js := h.log.JetStream()
	for n := from; n < to; n++ {
		for range commits {
			if _, err := js.PublishAsync(rawThread(n), []byte("commit")); err != nil {
				h.t.Fatal(err)
			}
		}
		if n%500 == 499 { // more outstanding ones would stall on a slow machine
			<-js.PublishAsyncComplete()
		}
	}
	<-js.PublishAsyncComplete()
	last, err := h.log.LastSeq(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return last
}

func rawThread(n int) string { return fmt.Sprintf("skein.log.acme.T-0190a000-0000-7000-8000-%012d", n) }

// No thread is passed over while others, or itself, are erased: neither one that
// stands where it stood, nor one that stands under its tombstone since.
func TestList_NoThreadIsSkippedWhileOthersAreErased(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const threads, long = 1600, 900
	first := h.rawThreads(0, threads/2, 1)
	h.rawThreads(threads/2, threads/2+1, long) // of a long thread only the last is in the list
	h.rawThreads(threads/2+1, threads, 1)
	stream, err := h.log.JetStream().Stream(h.ctx, "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for a, err := range list(h.ctx, h.log, "*") {
		if err != nil {
			t.Fatal(err)
		}
		if seen[a.id]++; len(seen) > 1 || seen[a.id] > 1 {
			continue
		}
		for n := range 5 { // the commits go under which they are in the list, as those of purged threads
			subject := rawThread(threads - 1 - n)
			tombstone, err := h.log.JetStream().Publish(h.ctx, subject, []byte("tombstone"))
			if err == nil {
				err = stream.Purge(h.ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(tombstone.Sequence))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for n := range uint64(long - 1) { // and commits that are not in the list, and come after where it stands
			if err := stream.DeleteMsg(h.ctx, first+1+n); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range threads {
		id := rawThread(n)[len("skein.log.acme."):]
		if seen[id] != 1 {
			t.Fatalf("%s was listed %d times, and %d threads of %d in all", id, seen[id], len(seen), threads)
		}
	}
}

// A list of one tenant ends with what it has, whatever other tenants write.
func TestList_OfATenant(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.rawThreads(0, 20, 2)
	if _, err := h.log.JetStream().Publish(h.ctx, "skein.log.globex.T-0190a000-0000-7000-8000-000000000001", []byte("commit")); err != nil {
		t.Fatal(err)
	}
	n := 0
	for a, err := range list(h.ctx, h.log, "acme") {
		if err != nil || a.tenant != "acme" || !events.IsThread(a.id) {
			t.Fatal(a, err)
		}
		n++
	}
	for range list(h.ctx, h.log, "nobody") {
		t.Error("a tenant without threads has one")
	}
	if n != 20 {
		t.Errorf("%d threads were listed", n)
	}
}

// What is read ahead of an aggregate is all that the log has of it, or nothing, and what is held
// is bounded, however threads are interleaved.
func TestAhead_AllOrNothing(t *testing.T) {
	t.Parallel()
	names := events.Names{Prefix: "skein"}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var stored []streams.Message
		of := map[aggregate][]uint64{}
		apart, count, largest := 1+rnd.IntN(1000), 2000, 60<<10 // threads that are written to at a time
		if seed == 0 {
			count, largest = 3*aheadMessages, 1
		}
		for seq := uint64(1); seq <= uint64(count); seq++ {
			a := aggregate{"acme", fmt.Sprintf("T-%d", int(seq)/(2*apart)*apart+rnd.IntN(apart))}
			m := streams.Message{Subject: names.Log(a.tenant, a.id), Seq: seq, Data: make([]byte, rnd.IntN(1+rnd.IntN(largest)))}
			stored, of[a] = append(stored, m), append(of[a], seq)
		}
		var order []listed
		for a, seqs := range of {
			order = append(order, listed{aggregate: a, last: seqs[len(seqs)-1]})
		}
		slices.SortFunc(order, func(a, b listed) int { return cmp.Compare(a.last, b.last) })
		r := &ahead{held: map[aggregate][]streams.Message{}, gone: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
		readable := count
		if seed%4 == 3 { // the reading ends: a block of the log is damaged
			readable = count - 500
		}
		r.next = func() (streams.Message, error, bool) {
			if len(stored) == count-readable {
				return streams.Message{}, io.ErrUnexpectedEOF, true
			}
			m := stored[0]
			stored = stored[1:]
			return m, nil, true
		}
		whole := 0
		for _, one := range order {
			var got []uint64
			for _, m := range r.take(names, one) {
				got = append(got, m.Seq)
			}
			if got != nil && !slices.Equal(got, of[one.aggregate]) {
				t.Fatalf("seed %d: of %s there are %v, and %v were read", seed, one.id, of[one.aggregate], got)
			}
			if got != nil {
				whole++
			}
			held := 0
			for _, list := range r.held {
				held += sizeOf(list)
			}
			if held != r.bytes || held > aheadBytes || len(r.order) > aheadMessages {
				t.Fatalf("seed %d: %d bytes are held, %d are counted", seed, held, r.bytes)
			}
		}
		if whole == 0 || r.bytes != 0 && readable == count {
			t.Errorf("seed %d: %d of %d threads were read ahead, and %d bytes are left", seed, whole, len(order), r.bytes)
		}
	}
}

// Of an aggregate that was taken, only its name is kept, and not the headers in which the server
// sent it.
func TestAhead_ForgetsWhatWasTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.rawThreads(0, 100, 1)
	r := readAhead(h.ctx, h.log, "acme")
	var headers []weak.Pointer[byte]
	next := r.next
	r.next = func() (streams.Message, error, bool) {
		m, err, more := next()
		if subject := m.Header.Get(nats.JSSubject); subject != "" {
			headers = append(headers, weak.Make(unsafe.StringData(subject)))
		}
		return m, err, more
	}
	for one, err := range list(h.ctx, h.log, "acme") {
		if err != nil {
			t.Fatal(err)
		}
		if got := r.take(h.log.Config().Names, one); len(got) != 1 {
			t.Fatalf("of %s there are %d messages", one.id, len(got))
		}
	}
	r.stop()
	runtime.GC()
	for n, header := range headers {
		if header.Value() != nil {
			t.Fatalf("the headers of message %d are kept", n+1)
		}
	}
	if len(headers) != 100 || len(r.order) != 100 {
		t.Errorf("%d messages were read, and %d names are kept", len(headers), len(r.order))
	}
}
