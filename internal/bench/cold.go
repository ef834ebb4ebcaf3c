package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	subject := events.DefaultNames().Query(tenant, "thread.list")
	for { // a query waits 5 s for the list
		reply, err := nc.RequestWithContext(ctx, subject, []byte(`{"limit":1}`))
		switch {
		case err != nil:
			return nil, fmt.Errorf("listing threads: %w", err)
		case reply.Header.Get(events.HeaderErrorCode) == "":
			s.Lists, s.Processor = time.Since(begun).Seconds(), (processor() - used).Seconds()
			if err := skein.ask(struct{}{}); err != nil {
				return nil, err
			}
			usage, err := skein.answer()
			s.Processor += usage.Processor
			return s, err
		}
	}
}
