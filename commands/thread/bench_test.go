package thread

import (
	"bytes"
	"testing"
)

// BenchmarkDecide decides one item on a thread of a thousand.
func BenchmarkDecide(b *testing.B) {
	k := begun(b)
	k.addItems(1000)
	c := k.command(message("itm_new", "Where is my order?"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decide(k.state, c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEvolve takes the twelve events of a turn into a state.
func BenchmarkEvolve(b *testing.B) {
	k := begun(b)
	made := k.do(turn()...)
	b.ReportAllocs()
	for b.Loop() {
		for i := range made {
			Evolve(k.state, &made[i])
		}
	}
}

// BenchmarkCommitTwelve drafts a thread.commit of twelve parts, as the
// dispatcher does, without encoding it.
func BenchmarkCommitTwelve(b *testing.B) {
	k := begun(b)
	c := k.command(turn()...)
	b.ReportAllocs()
	for b.Loop() {
		made, err := NewDraft(k.state).Do(c)
		if err != nil || len(made) != 12 {
			b.Fatal(len(made), err)
		}
	}
}

// BenchmarkDecodeState decodes the snapshot of a thread of 100,000 items.
func BenchmarkDecodeState(b *testing.B) {
	k := begun(b)
	k.addItems(100_000)
	raw, err := k.state.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeState(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode encodes the snapshot of a thread of 100,000 items.
func BenchmarkEncode(b *testing.B) {
	k := begun(b)
	k.addItems(100_000)
	b.ReportAllocs()
	var to bytes.Buffer
	for b.Loop() {
		to.Reset()
		if err := k.state.EncodeTo(&to); err != nil {
			b.Fatal(err)
		}
	}
}
