package events

import "testing"

// The hot paths: a relay or a projection decodes some 7,000 commits a second.

func BenchmarkNewCommit(b *testing.B) {
	list := turn()
	b.ReportAllocs()
	b.SetBytes(int64(len(commitOf(b, list).Body)))
	for b.Loop() {
		if _, err := NewCommit("", list); err != nil {
			b.Fatal(err)
		}
	}
}

// A commit of twelve events, once with every attribute and once with only those that every
// event has.
func BenchmarkDecodeCommit(b *testing.B) {
	few := turn()
	for i := range few {
		few[i].Causation, few[i].Actor, few[i].TraceParent = "", "", ""
	}
	for name, list := range map[string][]Event{"many": turn(), "few": few} {
		c := commitOf(b, list)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.Body)))
			for b.Loop() {
				if _, err := reread(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of auditing one thread of twenty events.
func BenchmarkTimelineChecker(b *testing.B) {
	list := react()
	c := NewTimelineChecker()
	b.ReportAllocs()
	for b.Loop() {
		for i := range list {
			if err := c.Check(&list[i]); err != nil {
				b.Fatal(err)
			}
		}
		c.Forget(tenant, thread)
	}
}

func BenchmarkDecodeEvent(b *testing.B) {
	list := turn()
	body, err := list[2].Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := DecodeEvent(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	list := turn()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = list[2].Append(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChain(b *testing.B) {
	c := commitOf(b, turn())
	b.ReportAllocs()
	b.SetBytes(int64(len(c.Body)))
	for b.Loop() {
		Chain(c.Chain, c.Body)
	}
}

func BenchmarkEventID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		EventID(tenant, thread, cmdID, 11)
	}
}

func BenchmarkDeriveID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		DeriveID(ItemPrefix, start, tenant, thread, cmdID, 11)
	}
}

func BenchmarkParseTime(b *testing.B) {
	s := start.String()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseTime(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkISO(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = start.ISO()
	}
}
