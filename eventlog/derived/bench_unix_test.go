//go:build unix

package derived

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// BenchmarkWays measures the processor time, of client and server, of a message of 600 bytes in
// windows of 250, each way that a derived stream could be written: as a chain of ids (the fence),
// as a fast-ingest batch whose first message is conditional, and under no condition. Documents
// have no headers of their own, events have three:
//
//	go test -run '^$' -bench Ways -benchtime 100000x ./eventlog/derived
func BenchmarkWays(b *testing.B) {
	for _, of := range []string{"documents", "events"} {
		for _, way := range []string{"chain", "batch", "plain"} {
			b.Run(of+"/"+way, func(b *testing.B) { writeWay(b, of == "events", way) })
		}
	}
}

func writeWay(b *testing.B, events bool, way string) {
	const window = 250
	nc := natstest.Connect(b, natstest.Start(b, natstest.SyncAlways()))
	js, err := jetstream.New(nc)
	must(b, err)
	cfg := jetstream.StreamConfig{
		Name: "WAYS", Subjects: []string{subject(">")}, PersistMode: jetstream.AsyncPersistMode, AllowDirect: true, Duplicates: time.Second, AllowBatchPublish: true,
	}
	if !events {
		cfg.MaxMsgsPerSubject, cfg.AllowRollup, cfg.Discard = 1, true, jetstream.DiscardNew
	}
	_, err = js.CreateStream(b.Context(), cfg)
	must(b, err)
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox + ".>")
	must(b, err)
	body, id := make([]byte, 600), ""
	begun := used(b)
	b.ResetTimer()
	for i := range b.N {
		m := &nats.Msg{Subject: subject(fmt.Sprintf("bench.T-0192837465-abcdef-%d.itm_u%d", i%1000, i%(b.N/2+1))), Data: body, Header: nats.Header{}}
		if events {
			m.Header = nats.Header{"Skein-Seq": {strconv.Itoa(i)}, "Skein-Version": {strconv.Itoa(i)}, "Content-Type": {"application/cloudevents+json"}}
		}
		at, last := i%window, i%window == window-1 || i == b.N-1
		switch way {
		case "batch":
			op := 1 // append; 0 starts a batch, 2 commits it
			if at == 0 {
				op = 0
				m.Header[streams.HeaderExpectedSeq] = []string{strconv.Itoa(i)}
			}
			if last {
				op = 2
			}
			m.Reply = fmt.Sprintf("%s.b%d.500.fail.%d.%d.$FI", inbox, i/window, at+1, op)
		case "chain":
			if id != "" {
				m.Header[streams.HeaderExpectedID] = []string{id}
			}
			id = "abcdefghijkl-" + strconv.FormatInt(int64(i), 36)
			m.Header[streams.HeaderID] = []string{id}
		}
		if last && m.Reply == "" {
			m.Reply = inbox + ".end"
		}
		must(b, nc.PublishMsg(m))
		for last {
			answer, err := answers.NextMsg(natstest.Patience)
			must(b, err)
			if bytes.Contains(answer.Data, []byte("error")) {
				b.Fatalf("message %d: %s", i, answer.Data)
			}
			last = bytes.HasPrefix(answer.Data, []byte(`{"type":"ack"`)) // how the batch flows
		}
	}
	b.ReportMetric(float64((used(b)-begun).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
}

// used returns the processor time that this process has taken.
func used(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
