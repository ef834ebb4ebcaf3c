package archive_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/schema"
)

// BenchmarkFirstTouch measures what an archive costs and saves, with every write
// fsynced: ms to archive a thread; bytes of its commits and of its object; ms of the
// first command by a process that does not know the thread, before the archive, after
// it, and after it without the snapshot; ms to read all its commits.
//
//	go test -run '^$' -bench FirstTouch -benchtime 5x ./archive
func BenchmarkFirstTouch(b *testing.B) {
	for _, size := range []int{20, 200} {
		b.Run(fmt.Sprintf("commits=%d", size), func(b *testing.B) { firstTouch(b, size) })
	}
}

func firstTouch(b *testing.B, size int) {
	log, err := eventlog.Open(natstest.Connect(b, natstest.Start(b, natstest.SyncAlways())), eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(log.Close)
	runner := projections.New(log, projections.Config{}, zerolog.Nop(), nil)
	if err := log.Ensure(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := runner.Ensure(b.Context()); err != nil {
		b.Fatal(err)
	}
	go func() { _ = runner.Run(b.Context()) }()
	go func() { _ = timeline.Of(log).Relay(b.Context()) }()
	validator, err := schema.New()
	if err != nil {
		b.Fatal(err)
	}
	do := func(d *commands.Dispatcher, command, id, data string) {
		b.Helper()
		if _, err := d.Do(b.Context(), "acme", command, []byte(`{"threadId":"`+id+`","data":`+data+`}`), commands.Meta{}); err != nil {
			b.Fatal(err)
		}
	}
	process := func() *commands.Dispatcher {
		return commands.NewDispatcher(log, validator, commands.Config{}, zerolog.Nop(), nil)
	}
	ms := map[string]time.Duration{}
	timed := func(name string, work func()) {
		began := time.Now()
		work()
		ms[name] += time.Since(began)
	}
	read := func(id string) {
		for _, err := range log.Thread(b.Context(), "acme", id, 1) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	a := archive.New(log, archive.Config{Patience: time.Minute}, zerolog.Nop())
	var bytes int64
	for n := range b.N {
		id, d := threadID(n), process()
		do(d, "thread.create", id, `{"title":"x"}`)
		for i := range size - 1 {
			do(d, "item.create", id, fmt.Sprintf(`{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Where is my order number %d? It should have been here on day %d."}]}}`, i*7919, i*31))
		}
		timed("touch-before", func() { do(process(), "thread.update", id, `{"title":"y"}`) })
		timed("read-before", func() { read(id) })
		timed("archive", func() {
			r, err := a.Thread(b.Context(), "acme", id, archive.Options{})
			if err != nil || r.Outcome != archive.Archived {
				b.Fatalf("%+v, %v", r, err)
			}
			bytes += r.Bytes
		})
		timed("read-after", func() { read(id) })
		timed("touch-after", func() { do(process(), "thread.update", id, `{"title":"z"}`) })
		if err := eventlog.SnapshotsOn(log.Streams()).Drop(b.Context(), "acme", id); err != nil {
			b.Fatal(err)
		}
		timed("touch-without-snapshot", func() { do(process(), "thread.update", id, `{"title":"w"}`) })
	}
	sizes, err := audit.Measure(b.Context(), log, audit.SizeOptions{Tenant: "acme"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op")
	for name, d := range ms {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), name+"-ms")
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "log-bytes")
	b.ReportMetric(float64(sizes.All.Archive.Bytes)/float64(b.N), "object-bytes")
}
