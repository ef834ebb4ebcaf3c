package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections/documents"
)

// BenchmarkRead measures the first read of a cold thread: its commits, of one message each, are
// read and folded.
//
//	go test -run '^$' -bench Read -benchtime 20x ./projections/query
func BenchmarkRead(b *testing.B) {
	for _, items := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("items=%d", items), func(b *testing.B) {
			h := readtest.New(b)
			id := h.Do("thread.create", "", `{}`).ThreadID
			var last uint64
			for n := 0; n < items; n += 10 {
				one := `{"command":"item.create","data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + strings.Repeat("word ", 60) + `"}]}}}`
				if items == 1000 { // as a conversation is written
					for range 10 {
						last = uint64(h.Do("thread.commit", id, `{"commands":[`+one+`]}`).Seq)
					}
					continue
				}
				last = uint64(h.Do("thread.commit", id, `{"commands":[`+strings.TrimSuffix(strings.Repeat(one+",", 10), ",")+`]}`).Seq)
			}
			b.ResetTimer()
			for range b.N {
				r := newColdReader(h.EventLog, h.Models, eventlog.PagesOn(h.EventLog.Streams()), nil, 0)
				t, err := r.Read(b.Context(), documents.ThreadName(readtest.Acme, id), last)
				if err != nil || len(t.All(documents.Items)) != items {
					b.Fatal(err)
				}
			}
		})
	}
}
