package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
)

// ColdStart is how long a server and a Skein take to start again on the threads of a run.
type ColdStart struct {
	Server   float64 `json:"serverSeconds"`   // until the server has opened the store
	Commands float64 `json:"commandsSeconds"` // from there, until Skein takes commands
	Lists    float64 `json:"listsSeconds"`    // from there, until a list of threads is answered

	Opening   float64 `json:"openingProcessorSeconds"` // of the processor, until the server has opened the store
	Processor float64 `json:"processorSeconds"`        // from there, of both, until a list of threads is answered

	ThawP50Ms float64 `json:"thawP50Ms"` // from a write to a cold thread until all of it is shown again
}

// ColdThreads is what cold threads cost.
type ColdThreads struct {
	Threads     int     `json:"threads"`
	ServerBytes float64 `json:"serverBytesPerColdThread"` // of Go's heap, from the first point to the last
	SkeinBytes  float64 `json:"skeinBytesPerColdThread"`
	ThawP50Ms   float64 `json:"thawP50Ms"`
	Ready       float64 `json:"readySeconds"` // from the start of the server until Skein takes commands
}

// coldThreads sums up a run whose threads are all cold.
func (r *MemoryResult) coldThreads() *ColdThreads {
	return &ColdThreads{
		Threads: r.Points[len(r.Points)-1].Threads, ServerBytes: r.ServerBytes, SkeinBytes: r.SkeinBytes,
		ThawP50Ms: r.Start.ThawP50Ms, Ready: r.Start.Server + r.Start.Commands,
	}
}

// freezers is how many parts of the threads are frozen at the same time.
const freezers = 16

// freeze makes threads cold, and removes their documents and, as a week does, the events from the
// timeline.
func (b *bench) freeze(ctx context.Context, threads []string) error {
	var g errgroup.Group
	for part := range slices.Chunk(threads, max(1, (len(threads)+freezers-1)/freezers)) {
		g.Go(func() error { return b.freezeSome(ctx, part) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	stream, err := b.log.JetStream().Stream(ctx, b.log.Config().Names.Stream(assets.TimelineStream))
	if err == nil { // of many messages
		patient, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		err = stream.Purge(patient, jetstream.WithPurgeKeep(1))
	}
	if err != nil {
		return fmt.Errorf("emptying the timeline: %w", err)
	}
	return b.caughtUp(ctx)
}

// freezeRest makes the threads cold that an interrupted run has left warm.
func (b *bench) freezeRest(ctx context.Context) error {
	var warm []string
	a := archive.New(b.log, archive.Config{}, zerolog.Nop())
	err := a.FreezeIdle(ctx, tenant, archive.Options{DryRun: true}, func(r archive.Result) { warm = append(warm, r.Thread) }, func(thread string, _ error) { warm = append(warm, thread) })
	if err != nil || len(warm) == 0 {
		return err
	}
	return b.freeze(ctx, warm)
}

// freezeSome makes threads cold as the freezer of a server does, but without its pace.
func (b *bench) freezeSome(ctx context.Context, threads []string) error {
	a := archive.New(b.log, archive.Config{Settle: -1, Patience: time.Minute}, zerolog.Nop())
	var failures []error
	done := func(r archive.Result) {
		if r.Outcome != archive.Frozen {
			failures = append(failures, fmt.Errorf("thread %s was not frozen: %s %s", r.Thread, r.Outcome, r.Reason))
		}
	}
	err := a.Freeze(ctx, tenant, threads, archive.Options{}, done, func(_ string, err error) { failures = append(failures, err) })
	if err = errors.Join(append(failures[:min(len(failures), 5)], err)...); err != nil {
		return err
	}
	n, err := a.Strip(ctx, tenant, threads, false)
	if err == nil && n != len(threads) {
		err = fmt.Errorf("the documents of %d cold threads were removed, of %d", n, len(threads))
	}
	return err
}

// startAgain starts a server and a Skein on the store of a run, whose own have ended, and measures
// how long that takes.
func startAgain(ctx context.Context, o embedded.Options, args []string, a apart) (s *ColdStart, err error) {
	begun, used := time.Now(), processor()
	server, err := embedded.Start(o)
	if err != nil {
		return nil, err
	}
	defer server.Shutdown()
	s = &ColdStart{Server: time.Since(begun).Seconds(), Opening: (processor() - used).Seconds()}
	begun, used, a.URL = time.Now(), processor(), server.URL()
	skein, err := startSkein(ctx, args, a)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, skein.stop()) }()
	s.Commands = time.Since(begun).Seconds()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if _, err := listed(ctx, nc, 1); err != nil {
		return nil, err
	}
	s.Lists, s.Processor = time.Since(begun).Seconds(), (processor() - used).Seconds()
	if err := skein.ask(struct{}{}); err != nil {
		return nil, err
	}
	usage, err := skein.answer()
	if err != nil {
		return nil, err
	}
	s.Processor += usage.Processor
	s.ThawP50Ms, err = thaw(ctx, nc)
	return s, err
}

// listed lists threads, once they can be listed.
func listed(ctx context.Context, nc *nats.Conn, most int) ([]events.Thread, error) {
	for { // a query waits 5 s for the list
		var list events.ThreadList
		err := askJSON(ctx, nc, events.DefaultNames().Query(tenant, "thread.list"), fmt.Sprintf(`{"limit":%d}`, most), &list)
		if !events.HasCode(err, events.ProjectionBehind) {
			return list.Threads, err
		}
	}
}

// thawed is how many cold threads are written to.
const thawed = 100

// thaw writes to cold threads, one after the other, and returns the median of the milliseconds
// until a query shows what was written: then all documents of the thread are back.
func thaw(ctx context.Context, nc *nats.Conn) (p50 float64, err error) {
	threads, err := listed(ctx, nc, thawed)
	if err != nil {
		return 0, err
	}
	var took []time.Duration
	for _, t := range threads {
		begun := time.Now()
		var reply events.Reply
		err := askJSON(ctx, nc, events.DefaultNames().Command(tenant, "message.add"), fmt.Sprintf(`{"threadId":%q,"data":{"role":"user","content":"Is it still there?"}}`, t.ID), &reply)
		if err != nil {
			return 0, fmt.Errorf("writing to cold thread %s: %w", t.ID, err)
		}
		var shown events.ItemList
		err = askJSON(ctx, nc, events.DefaultNames().Query(tenant, "item.list"), fmt.Sprintf(`{"threadId":%q,"minVersion":%d,"limit":1}`, t.ID, reply.Version), &shown)
		if err != nil {
			return 0, fmt.Errorf("reading thread %s, which was cold: %w", t.ID, err)
		}
		took = append(took, time.Since(begun))
	}
	if len(took) == 0 {
		return 0, errors.New("no cold thread is listed")
	}
	slices.Sort(took)
	return ms(took[len(took)/2]), nil
}

// askJSON sends a request, and decodes the answer. The error is the refusal, if it is one.
func askJSON(ctx context.Context, nc *nats.Conn, subject, body string, into any) error {
	reply, err := nc.RequestWithContext(ctx, subject, []byte(body))
	if err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	if refusal := events.DecodeRefusal(reply.Header.Get(events.HeaderErrorCode), reply.Data); refusal != nil {
		return refusal
	}
	return json.Unmarshal(reply.Data, into)
}
