package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/dev/bench/peer"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// Peers returns the databases that Skein can be measured with.
func Peers() []string { return []string{"postgres", "sqlite"} }

// peers is what a run compares Skein with, on the same disk.
type peers struct {
	postgres *peer.Postgres // nil: not asked for, or not installed
	sqlite   bool
	turn     peer.Turn
}

// startPeers starts what the run is to be compared with. One that is not installed is left out,
// and the result says so. stop ends them.
func (b *bench) startPeers(ctx context.Context) (p *peers, stop func() error, err error) {
	p, stop = &peers{sqlite: slices.Contains(b.o.Peers, "sqlite")}, func() error { return nil }
	if len(b.o.Peers) == 0 {
		return p, stop, nil
	}
	if p.turn, err = storedTurn(); err != nil {
		return nil, nil, err
	}
	if !slices.Contains(b.o.Peers, "postgres") {
		return p, stop, nil
	}
	p.postgres, err = peer.StartPostgres(ctx, b.o.Dir)
	if errors.Is(err, peer.ErrMissing) {
		p.postgres = nil
		b.skip(err)
		return p, stop, nil
	}
	if err != nil {
		return nil, nil, err
	}
	b.result.Versions = append(b.result.Versions, "Postgres "+p.postgres.Version)
	return p, p.postgres.Stop, nil
}

// skip notes a comparison that cannot be made here.
func (b *bench) skip(why error) {
	b.result.Skipped = append(b.result.Skipped, why.Error())
	b.o.Log("skipped: " + why.Error())
}

// measure measures the peers with a number of clients.
func (b *bench) measurePeers(ctx context.Context, p *peers, clients int, threads []string) error {
	work := peer.Work{Turn: p.turn, Clients: clients, Threads: threads, Millis: b.duration().Milliseconds(), Every: b.every()}
	if p.postgres != nil {
		for _, shape := range peer.Shapes() {
			if err := b.measurePostgres(ctx, p.postgres, peer.PostgresWork{Work: work, DSN: p.postgres.DSN(), Shape: shape}); err != nil {
				return err
			}
		}
	}
	if !p.sqlite || clients > 1 { // it has one writer
		return nil
	}
	b.o.Log("sqlite: rows and documents")
	settle()
	got, err := peer.RunSQLite(ctx, b.o.Dir, work)
	if errors.Is(err, peer.ErrMissing) {
		b.skip(err)
		p.sqlite = false
		return nil
	}
	if err != nil {
		return err
	}
	loaded := Loaded{Nanos: got.Nanos}
	c := measured("sqlite: rows and documents", 1, loaded.durations(), time.Duration(got.Elapsed))
	c.spent(time.Duration(got.Processor), time.Duration(got.Processor))
	b.result.Cases = append(b.result.Cases, c)
	b.result.Versions = append(b.result.Versions, "SQLite "+got.Version)
	return nil
}

func (b *bench) measurePostgres(ctx context.Context, server *peer.Postgres, work peer.PostgresWork) error {
	b.o.Log(fmt.Sprintf("postgres: %s, %d clients", work.Shape, work.Clients))
	if err := work.Prepare(ctx); err != nil {
		return err
	}
	settle()
	begun := server.Processor()
	got, err := Load{Postgres: &work}.start(ctx, b.o.LoadArgs)
	if err != nil {
		return fmt.Errorf("postgres: %s: %w", work.Shape, err)
	}
	used := server.Processor() - begun
	c := measured("postgres: "+string(work.Shape), work.Clients, got.durations(), time.Duration(got.Elapsed))
	c.ClientMicros = float64(got.Processor) / 1000 / float64(max(c.Commits, 1))
	c.spent(used, used)
	b.result.Cases = append(b.result.Cases, c)
	return work.Check(ctx, c.Commits)
}

// postgres is the client process's part of that.
func (l Load) postgres(ctx context.Context) (*Loaded, error) {
	begun := processor()
	nanos, elapsed, err := l.Postgres.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &Loaded{Nanos: nanos, Elapsed: elapsed.Nanoseconds(), Processor: (processor() - begun).Nanoseconds()}, nil
}

// storedTurn returns what Skein stores of a commit of the workload: its events, and the documents
// that they change.
func storedTurn() (peer.Turn, error) {
	create, commit, nonce, err := readyTurn()
	if err != nil {
		return peer.Turn{}, err
	}
	models := documents.NewModels()
	memory := models.NewMemory(nil)
	for i, c := range []*events.Commit{create, commit} {
		c.Seq = uint64(i + 1)
		if err := memory.Apply(c); err != nil {
			return peer.Turn{}, err
		}
	}
	t := peer.Turn{Thread: commit.Thread, Nonce: nonce}
	for i := range commit.Events {
		t.Events = append(t.Events, peer.Row{Kind: string(commit.Events[i].Type), Body: string(commit.Events[i].Raw())})
	}
	for _, slot := range memory.All(documents.AllKinds) {
		if slot.Seq != commit.Seq {
			continue // the turn has not changed it
		}
		body, err := documents.Encode(slot.Doc)
		if err != nil {
			return peer.Turn{}, err
		}
		t.Documents = append(t.Documents, peer.Row{Kind: models.Of(slot.Place.Kind).Bucket, Key: strings.TrimPrefix(slot.Place.Key(), tenant+"."), Body: string(body)})
	}
	return t, nil
}
