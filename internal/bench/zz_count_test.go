package bench

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/serve"
)

func TestZZCount(t *testing.T) {
	at, _ := strconv.Atoi(os.Getenv("AT"))
	n, _ := strconv.Atoi(os.Getenv("N"))
	if at == 0 {
		t.Skip()
	}
	ctx := context.Background()
	dir := t.TempDir()
	server, err := serve.Start(ctx, serve.Config{Store: dir, NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Register: script}, zerolog.New(os.Stderr).Level(zerolog.WarnLevel))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(ctx)
	nc, err := nats.Connect(server.Addresses().NATS)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{o: Options{Seconds: 1}.withDefaults(), dir: dir, url: server.Addresses().NATS, nc: nc}
	if b.log, err = eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil); err != nil {
		t.Fatal(err)
	}
	threads, err := b.create(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.caughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	js, _ := jetstream.New(nc)
	seqs := func() map[string]uint64 {
		out := map[string]uint64{}
		for i := range js.ListStreams(ctx).Info() {
			out[i.Config.Name] = i.State.LastSeq
		}
		return out
	}
	var mu sync.Mutex
	core := map[string]int{}
	watch, _ := nats.Connect(server.Addresses().NATS)
	before := seqs()
	watch.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		p := strings.Split(m.Subject, ".")
		k := p[0]
		switch {
		case p[0] == "skein" && len(p) > 1:
			k += "." + p[1]
			if p[1] == "cmd" || p[1] == "query" { k += "." + strings.Join(p[3:], ".") }
		case p[0] == "$KV", p[0] == "$JS" :
			k += "." + strings.Join(p[1:min(len(p),4)], ".")
			if p[0] == "$KV" { k = p[0]+"."+p[1] }
		case p[0] == "_INBOX":
			k = "_INBOX"
		}
		core[k]++
	})
	watch.Flush()
	load := Load{URL: server.Addresses().NATS, Clients: at, Threads: threads, Millis: 60000, React: true}
	got, err := load.run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.caughtUp(ctx)
	time.Sleep(time.Second)
	after := seqs()
	turns := float64(len(got.Nanos))
	fmt.Printf("turns %v refused %d elapsed %v\n", turns, got.Refused, time.Duration(got.Elapsed))
	var names []string
	for k := range after {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		if d := after[k] - before[k]; d > 0 {
			fmt.Printf("  stream %-30s %.2f\n", k, float64(d)/turns)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	names = nil
	for k := range core {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		fmt.Printf("  core %-40s %.2f\n", k, float64(core[k])/turns)
	}
	if n <= 3 {
		i := 0
		for m, err := range b.log.Raw(ctx, events.DefaultNames().Log("*", "*"), 0) {
			if err != nil { t.Fatal(err) }
			c, err := b.log.Decode(m)
			if err != nil { t.Fatal(err) }
			fmt.Println("commit", i, c.Thread, len(c.Body))
			i++
			for _, e := range c.Events {
				fmt.Println("    ", e.Type, e.Subject, len(e.Raw()))
			}
		}
		s, _ := js.Stream(ctx, "SKEIN_CHUNKS")
		info, _ := s.Info(ctx)
		for q := info.State.FirstSeq; q <= info.State.LastSeq; q++ {
			m, err := s.GetMsg(ctx, q)
			if err == nil { fmt.Println(m.Subject, string(m.Data)) }
		}
	}
}
