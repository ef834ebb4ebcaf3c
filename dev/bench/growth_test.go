package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// amounts are counts and bytes, which do not depend on how fast a machine is.
type amounts struct {
	answer  uint64 // bytes that the client received
	log     uint64 // bytes of the log
	written uint64 // messages that were written to the log and to what is derived from it
	stored  uint64 // bytes of all that, at rest
	rest    uint64 // messages of it
}

func (a amounts) since(b amounts) amounts {
	return amounts{a.answer - b.answer, a.log - b.log, a.written - b.written, a.stored - b.stored, a.rest - b.rest}
}

// now returns what there is, once everything shows.
func (b *longBench) now(ctx context.Context) (a amounts, err error) {
	if err := b.base.caughtUp(ctx); err != nil {
		return a, err
	}
	a.answer = b.base.nc.Stats().InBytes
	names := b.base.log.Config().Names
	list := b.base.log.JetStream().ListStreams(ctx)
	for info := range list.Info() {
		if info.Config.Storage == jetstream.MemoryStorage || info.Config.Name == "KV_"+names.Bucket(assets.SnapshotBucket) {
			continue // what processes tell of themselves, and what is made when a thread has grown by a quarter
		}
		a.written, a.stored, a.rest = a.written+info.State.LastSeq, a.stored+info.State.Bytes, a.rest+info.State.Msgs
		if info.Config.Name == names.Stream(assets.LogStream) {
			a.log = info.State.Bytes
		}
	}
	return a, list.Err()
}

// What an operation on a thread reads and writes does not grow with what the thread has: at 10,000
// messages it is at most twice what it is at 1,000, or there is a reason. docs/performance.md has the
// table.
func TestGrowth(t *testing.T) {
	const before, last = 1000, 10_000
	var b *longBench
	send := func(ctx context.Context) error {
		reply, err := b.c.Send(ctx, b.thread, events.CreateItem{Item: message(7)})
		if err == nil {
			b.have = int(reply.Version)
		}
		return err
	}
	read := func(order events.Order) func(context.Context) error {
		return func(ctx context.Context) error {
			limit := int64(50)
			page, err := client.Read(ctx, b.c, events.ListItems{ThreadID: b.thread, Limit: &limit, Order: order})
			if err == nil && len(page.Items) != int(limit) {
				err = fmt.Errorf("a page of %d items", len(page.Items))
			}
			return err
		}
	}
	fork := func(ctx context.Context) error {
		index := int64(b.have / 2)
		_, err := b.c.Send(ctx, b.thread, events.ForkThread{MessageIndex: &index})
		return err
	}
	operations := []struct {
		name string
		do   func(context.Context) error
		of   func(amounts) uint64
	}{
		{"a message: bytes in the log", send, func(a amounts) uint64 { return a.log }},
		{"a message: messages written", send, func(a amounts) uint64 { return a.written }},
		{"first page of 50: bytes", read("asc"), func(a amounts) uint64 { return a.answer }},
		{"last page of 50: bytes", read("desc"), func(a amounts) uint64 { return a.answer }},
		{"a page of the chat: bytes", func(ctx context.Context) error {
			limit := int64(50)
			_, err := client.Read(ctx, b.c, events.ListMessages{ThreadID: b.thread, GetMessagesOptions: events.GetMessagesOptions{Limit: &limit, Order: "desc"}})
			return err
		}, func(a amounts) uint64 { return a.answer }},
		{"a further fork: bytes in the log", fork, func(a amounts) uint64 { return a.log }},
		{"a further fork: messages written", fork, func(a amounts) uint64 { return a.written }},
		{"a further fork: bytes at rest", fork, func(a amounts) uint64 { return a.stored }},
	}
	b = &longBench{o: LongOptions{Log: func(string) {}}, dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(b.start(t.Context()))
	defer func() { b.stop() }()
	created, err := b.c.Send(t.Context(), "", events.CreateThread{})
	must(err)
	b.thread, b.have = created.ThreadID, int(created.Version)
	empty, err := b.now(t.Context())
	must(err)
	rows := make([][]uint64, len(operations)+2)
	for _, n := range []int{100, before, last} {
		must(b.grow(t.Context(), n))
		full, err := b.now(t.Context())
		must(err)
		must(fork(t.Context()))
		forked, err := b.now(t.Context())
		must(err)
		for i, o := range operations {
			least := ^uint64(0) // something else may be written meanwhile
			for range 3 {
				was, err := b.now(t.Context())
				must(err)
				received := b.base.nc.Stats().InBytes
				must(o.do(t.Context()))
				received = b.base.nc.Stats().InBytes - received
				is, err := b.now(t.Context())
				must(err)
				d := is.since(was)
				d.answer = received
				least = min(least, o.of(d))
			}
			rows[i] = append(rows[i], least)
		}
		rows[len(operations)+1] = append(rows[len(operations)+1], forked.since(full).stored)
		rows[len(operations)] = append(rows[len(operations)], full.since(empty).stored/uint64(b.have))
	}
	check := func(name, reason string, row []uint64) {
		t.Logf("| %s | %d | %d | %d | %s |", name, row[0], row[1], row[2], reason)
		if row[2] > 2*row[1] && reason == "" {
			t.Errorf("%s: %v at 100, %d and %d messages, for no reason that is known", name, row, before, last)
		}
	}
	for i, o := range operations {
		check(o.name, "", rows[i])
	}
	check("at rest, a message: bytes", "", rows[len(operations)])
	check("the first fork: bytes at rest", "the history is put on pages, once", rows[len(operations)+1])
}
