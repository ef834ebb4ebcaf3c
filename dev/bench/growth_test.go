package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
)

// amounts are counts and bytes, which do not depend on how fast a machine is.
type amounts struct {
	answer  uint64 // bytes that the client received
	log     uint64 // bytes of the log
	written uint64 // messages that were written to the log and to what is derived from it
	stored  uint64 // bytes of all that, at rest
}

func (a amounts) since(b amounts) amounts {
	return amounts{a.answer - b.answer, a.log - b.log, a.written - b.written, a.stored - b.stored}
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
		if info.Config.Storage == jetstream.MemoryStorage || info.Config.Name == objects.Stream(names.Bucket(assets.SnapshotBucket)) {
			continue // what processes tell of themselves, and what is made when a thread has grown by a quarter
		}
		a.written, a.stored = a.written+info.State.LastSeq, a.stored+info.State.Bytes
		if info.Config.Name == names.Stream(assets.LogStream) {
			a.log = info.State.Bytes
		}
	}
	return a, list.Err()
}

// growths are the numbers of messages of which each amount is measured: the last one may have at most
// twice the amount of the second.
func growths() []int {
	if os.Getenv("SKEIN_GROWTH") != "" {
		return []int{100, 1000, 10_000, 100_000}
	}
	return []int{100, 1000, 10_000}
}

// operation is one whose amount is measured.
type operation struct {
	name   string
	reason string // why it may grow; empty: it may not
	do     func(context.Context) error
	of     func(amounts) uint64
}

// send adds a message.
func (b *longBench) send(ctx context.Context) error {
	reply, err := b.c.Send(ctx, b.thread, events.CreateItem{Item: message(7)})
	if err == nil {
		b.have = int(reply.Version)
	}
	return err
}

// turn adds a turn with a tool call.
func (b *longBench) turn(ctx context.Context) error {
	var parts []events.SubCommand
	if err := json.Unmarshal(turn(strings.ReplaceAll(uuid.NewString(), "-", "")), &parts); err != nil {
		return err
	}
	reply, err := b.c.Commit(ctx, b.thread, parts)
	if err == nil {
		b.have = int(reply.Version)
	}
	return err
}

// read reads a page.
func (b *longBench) read(order events.Order) func(context.Context) error {
	return func(ctx context.Context) error {
		limit := int64(50)
		page, err := client.Read(ctx, b.c, events.ListItems{ThreadID: b.thread, Limit: &limit, Order: order})
		if err == nil && len(page.Items) != int(limit) {
			err = fmt.Errorf("a page of %d items", len(page.Items))
		}
		return err
	}
}

// chat reads a page of the chat, as a reload does.
func (b *longBench) chat(ctx context.Context) error {
	limit := int64(50)
	_, err := client.Read(ctx, b.c, events.ListMessages{ThreadID: b.thread, GetMessagesOptions: events.GetMessagesOptions{Limit: &limit, Order: "desc"}})
	return err
}

// fork forks the thread in its middle.
func (b *longBench) fork(ctx context.Context) error {
	index := int64(b.have / 2)
	_, err := b.c.Send(ctx, b.thread, events.ForkThread{MessageIndex: &index})
	return err
}

func (b *longBench) operations() []operation {
	log, written := func(a amounts) uint64 { return a.log }, func(a amounts) uint64 { return a.written }
	answer, stored := func(a amounts) uint64 { return a.answer }, func(a amounts) uint64 { return a.stored }
	return []operation{
		{"a message: bytes in the log", "", b.send, log},
		{"a message: messages written", "", b.send, written},
		{"a turn: bytes in the log", "", b.turn, log},
		{"a turn: messages written", "", b.turn, written},
		{"first page of 50: bytes", "", b.read("asc"), answer},
		{"last page of 50: bytes", "", b.read("desc"), answer},
		{"a page of the chat: bytes", "", b.chat, answer},
		{"a further fork: bytes in the log", "", b.fork, log},
		{"a further fork: messages written", "", b.fork, written},
		{"a further fork: bytes at rest", "", b.fork, stored},
	}
}

// amount does an operation three times, and returns the least that it took: something else may be
// written meanwhile.
func (b *longBench) amount(ctx context.Context, o operation) (uint64, error) {
	least := ^uint64(0)
	for range 3 {
		was, err := b.now(ctx)
		if err != nil {
			return 0, err
		}
		received := b.base.nc.Stats().InBytes
		if err := o.do(ctx); err != nil {
			return 0, fmt.Errorf("%s: %w", o.name, err)
		}
		received = b.base.nc.Stats().InBytes - received
		is, err := b.now(ctx)
		if err != nil {
			return 0, err
		}
		d := is.since(was)
		d.answer = received
		least = min(least, o.of(d))
	}
	return least, nil
}

// state returns the state of the thread, which a process keeps of one that is in use.
func (b *longBench) state(ctx context.Context) (*thread.State, error) {
	s := &thread.State{}
	for c, err := range b.base.log.Thread(ctx, tenant, b.thread, 1) {
		if err != nil {
			return nil, err
		}
		thread.Apply(s, c)
	}
	return s, nil
}

// What an operation on a thread reads and writes does not grow with what the thread has: at 10,000
// messages it is at most twice what it is at 1,000, or there is a reason. docs/performance.md has the
// table, up to 100,000 messages (SKEIN_GROWTH=1).
func TestGrowth(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b := &longBench{o: LongOptions{Log: func(string) {}}, dir: t.TempDir()}
	must(b.start(t.Context()))
	defer func() { b.stop() }()
	created, err := b.c.Send(t.Context(), "", events.CreateThread{})
	must(err)
	b.thread, b.have = created.ThreadID, int(created.Version)
	list := b.operations()
	rows := append(list[:len(list):len(list)], operation{name: "at rest, a message: bytes"},
		operation{name: "the state, a message: bytes of its snapshot"}, operation{name: "the state, a message: bytes in memory"},
		operation{name: "the first fork: bytes at rest", reason: "the history is put on pages, once"})
	table := make([][]uint64, len(rows))
	for _, n := range growths() {
		before, had := value(b.now(t.Context())), b.have
		must(b.grow(t.Context(), n))
		full := value(b.now(t.Context()))
		state := value(b.state(t.Context()))
		snapshot := value(state.Encode())
		must(b.fork(t.Context()))
		forked := value(b.now(t.Context()))
		for i, o := range list {
			table[i] = append(table[i], value(b.amount(t.Context(), o)))
		}
		for i, v := range []uint64{full.since(before).stored / uint64(n-had), uint64(len(snapshot) / n), uint64(state.Bytes()) / uint64(n), forked.since(full).stored} {
			table[len(list)+i] = append(table[len(list)+i], v)
		}
	}
	for i, row := range rows {
		t.Logf("| %s | %s | %s |", row.name, strings.Trim(strings.ReplaceAll(fmt.Sprint(table[i]), " ", " | "), "[]"), row.reason)
		if last := table[i][len(table[i])-1]; last > 2*table[i][1] && row.reason == "" {
			t.Errorf("%s: %v at %v messages, for no reason that is known", row.name, table[i], growths())
		}
	}
}

// value returns a value that comes without an error.
func value[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
