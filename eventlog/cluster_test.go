package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// nodes are three servers of one cluster, in this process.
type nodes struct {
	*natstest.Cluster
	t *testing.T
}

// startNodes starts a cluster and returns a log on it with so many copies of all.
func startNodes(t *testing.T, copies int) (*nodes, *Log) {
	t.Helper()
	n := &nodes{natstest.StartCluster(t), t}
	nc, err := nats.Connect(n.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	must(t, err)
	t.Cleanup(nc.Close)
	return n, openLog(t, nc, Config{Replicas: copies}, nil)
}

// follower gives a server that does not lead a stream, while another does.
func (n *nodes) follower(stream string) int {
	n.t.Helper()
	follower := -1
	eventually(n.t, "a server that follows "+stream, func() bool {
		follower = -1
		led := false
		for i, s := range n.Servers {
			if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
				led = true
			} else if s.JetStreamIsStreamCurrent(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
				follower = i
			}
		}
		return led && follower >= 0
	})
	return follower
}

// copies gives what each server has of a stream.
func (n *nodes) copies(stream string) [3]string {
	var out [3]string
	for i, s := range n.Servers {
		account, err := s.LookupAccount(server.DEFAULT_GLOBAL_ACCOUNT)
		must(n.t, err)
		// The server gives a stream's state to its leader only; its health page gives all.
		page, err := s.Jsz(&server.JSzOptions{Account: account.Name, Accounts: true, Streams: true})
		must(n.t, err)
		for _, a := range page.AccountDetails {
			for _, d := range a.Streams {
				if d.Name == stream {
					out[i] = fmt.Sprintf("%d messages, %d to %d", d.State.Msgs, d.State.FirstSeq, d.State.LastSeq)
				}
			}
		}
	}
	return out
}

// What a fence writes is the same in every copy, also in one that was away.
func TestACopyThatWasAwayHasAll(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes much")
	}
	n, l := startNodes(t, 3)
	must(t, assets.EnsureBucket(t.Context(), l.conn, docs))
	f := fenceOf(t, l, docs)
	for i := range 10 {
		must(t, put(t, f, fmt.Sprint("before", i)))
	}
	must(t, f.Flush(t.Context()))
	stream := "KV_" + docs
	away := n.follower(stream)
	n.Stop(away)
	eventually(t, "a connection to another server", func() bool {
		return l.conn.NATS().IsConnected() && l.conn.NATS().ConnectedServerName() != n.Name(away)
	})
	big := make([]byte, 512<<10)
	for i := range 40 {
		must(t, f.put(t, fmt.Sprint("big", i%3), big))
	}
	must(t, f.Flush(t.Context()))
	n.Start(away)
	eventually(t, "the copy has caught up", func() bool {
		return n.Servers[away].JetStreamIsStreamCurrent(server.DEFAULT_GLOBAL_ACCOUNT, stream)
	})
	for i := range 100 {
		must(t, put(t, f, fmt.Sprint("after", i)))
		if i%7 == 0 {
			must(t, f.Flush(t.Context()))
		}
	}
	must(t, f.Flush(t.Context()))
	var got [3]string
	deadline := time.Now().Add(patience)
	for got = n.copies(stream); got[0] != got[1] || got[1] != got[2]; got = n.copies(stream) {
		if time.Now().After(deadline) {
			t.Fatalf("the copies differ: %v (the first of them: n%d was away)", got, away+1)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Log(got)
}

// The fence of a replicated stream keeps what that of a single copy keeps.
func TestAReplicatedFence(t *testing.T) {
	_, l := startNodes(t, 3)
	must(t, assets.EnsureBucket(t.Context(), l.conn, docs))
	old := fenceOf(t, l, docs)
	var want []string
	for i := range 3*500 + 100 {
		want = append(want, fmt.Sprint(i))
		must(t, put(t, old, want[i]))
	}
	must(t, old.Flush(t.Context()), old.Flush(t.Context()))
	if got := written(t, l); got != strings.Join(want, " ") || old.Last() != uint64(len(want)) {
		t.Errorf("the order is lost, or the end (%d): %.100s", old.Last(), got)
	}
	young := fenceOf(t, l, docs)
	must(t, put(t, young, "b0"), young.Flush(t.Context()))
	for i := range 5 {
		must(t, put(t, old, fmt.Sprint("a", i)), put(t, young, fmt.Sprint("b", i+1)))
	}
	must(t, young.Flush(t.Context()))
	err := old.Flush(t.Context())
	if !streams.IsFenced(err) {
		t.Errorf("the one that was replaced: %v", err)
	}
	if err := put(t, old, "late"); !streams.IsFenced(err) {
		t.Errorf("after that: %v", err)
	}
	if got := written(t, l); !strings.HasSuffix(got, " 1599 b0 b1 b2 b3 b4 b5") {
		t.Errorf("written was %s", got[len(got)-60:])
	}
}

// lagging answers every other direct get of a stream as a copy does that has
// nothing yet, beside the server's own answer; the first to come counts.
func (n *nodes) lagging(stream string) {
	n.t.Helper()
	nc, err := nats.Connect(n.Servers[0].ClientURL())
	must(n.t, err)
	n.t.Cleanup(nc.Close)
	asked := 0
	_, err = nc.Subscribe("$JS.API.DIRECT.GET."+stream, func(m *nats.Msg) {
		if asked++; asked%2 == 0 {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"404"}, "Description": {"No Results"}}})
		}
	})
	must(n.t, err)
	must(n.t, nc.Flush())
}

// What was written is read at once, also where a copy answers that lags: a commit
// by its sequence, the last of a thread, all of it, what a query was promised of
// documents, and where the timeline stands.
func TestReadsOnAClusterAreNotOld(t *testing.T) {
	n, l := startNodes(t, 3)
	other := sibling(t, l)
	must(t, assets.EnsureBucket(t.Context(), l.conn, docs))
	for _, stream := range []string{l.cfg.Names.Stream(assets.LogStream), l.cfg.Names.Stream(assets.TimelineStream), "KV_" + docs} {
		n.lagging(stream)
	}
	fence := fenceOf(t, l, docs)
	for i := range 40 {
		w := newAuthor(i).next(t, 1)
		c := w.Commit
		must(t, l.Append(t.Context(), w), l.relay(t.Context(), c.Seq))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		got, err := other.Get(ctx, c.Seq)
		must(t, err)
		last, err := other.Last(ctx, c.Tenant, c.Thread)
		must(t, err)
		if got == nil || last == nil || got.Chain != c.Chain || last.Seq != c.Seq {
			t.Fatalf("commit %d is not read (%t), or not as the last (%t)", c.Seq, got != nil, last != nil)
		}
		commits := 0
		for _, err := range other.Thread(ctx, c.Tenant, c.Thread, 1) {
			must(t, err)
			commits++
		}
		key := fmt.Sprint("k", i)
		must(t, fence.finalPut(t, key, []byte(key)))
		other.Bucket(docs).Shows(fence.Last())
		found, err := other.Bucket(docs).Get(ctx, key)
		must(t, err)
		all, err := other.Bucket(docs).Range(ctx, ">", 1, 1000)
		must(t, err)
		if commits != 1 || len(found) != 1 || len(all) != i+1 {
			t.Fatalf("%d commits, %d documents, %d of %d documents", commits, len(found), len(all), i+1)
		}
		if at, err := other.TimelineSeq(ctx); err != nil || at != c.Seq {
			t.Fatalf("the timeline stands at %d, not %d: %v", at, c.Seq, err)
		}
		cancel()
	}
	if found, err := other.Bucket(docs).Get(t.Context(), "none", "none.*"); err != nil || len(found) != 0 {
		t.Errorf("what is not there: %v, %v", found, err)
	}
}

// A cluster acknowledges a commit a moment before it takes the next one of the
// same thread. Whoever writes at once has no conflict with itself.
func TestOneCommitRightAfterTheOther(t *testing.T) {
	_, l := startNodes(t, 3)
	newAuthor(1).write(t, l, 1000, 1)
}

// One copy becomes three: the log is kept, what is derived is made anew in the
// way that three copies are stored, and the timeline is filled again.
func TestMoreCopies(t *testing.T) {
	_, l := startNodes(t, 1)
	a := newAuthor(1)
	a.write(t, l, 5, 2)
	must(t, l.relay(t.Context(), 5))
	cfg := l.cfg
	cfg.Replicas = 3
	more := openLog(t, l.conn.NATS(), cfg, nil)
	for name, derived := range map[string]bool{assets.LogStream: false, assets.TimelineStream: true, assets.CommandStream: false, assets.RunStream: true} {
		stream, err := more.conn.JetStream().Stream(t.Context(), more.cfg.Names.Stream(name))
		must(t, err)
		got := stream.CachedInfo().Config
		if got.Replicas != 3 || got.Compression != jetstream.NoCompression || got.PersistMode == jetstream.AsyncPersistMode || derived && stream.CachedInfo().State.Msgs > 0 {
			t.Errorf("%s: %d copies, compression %v, persist mode %v, %d messages", name, got.Replicas, got.Compression, got.PersistMode, stream.CachedInfo().State.Msgs)
		}
	}
	a.write(t, more, 5, 2)
	must(t, more.relay(t.Context(), 10))
	n := 0
	for _, err := range more.TimelineMessages(t.Context(), "*", "*") {
		must(t, err)
		n++
	}
	if commits := history(t, more); len(commits) != 10 || n != 20 {
		t.Errorf("%d commits, %d events on the timeline", len(commits), n)
	}
}

// A fence of a cluster waits where nobody hears it, as after an election.
func TestAReplicatedFenceIsHeard(t *testing.T) {
	n, l := startNodes(t, 3)
	must(t, assets.EnsureBucket(t.Context(), l.conn, docs))
	for _, many := range []int{1, 10} {
		f := fenceOf(t, l, docs)
		for i := range many {
			must(t, put(t, f, fmt.Sprint(i)))
		}
		subject := "$KV." + docs + ".*"
		for _, s := range n.Servers {
			must(t, s.GlobalAccount().AddMapping(subject, "nobody"))
		}
		if _, err := l.conn.NATS().RequestWithContext(t.Context(), "$KV."+docs+".x", nil); !errors.Is(err, nats.ErrNoResponders) {
			t.Fatalf("somebody hears it: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- f.Flush(t.Context()) }()
		select {
		case err := <-done:
			t.Fatalf("%d messages: it does not wait: %v", many, err)
		case <-time.After(200 * time.Millisecond):
		}
		for _, s := range n.Servers {
			s.GlobalAccount().RemoveMapping(subject)
		}
		must(t, within(t, "the end of the flush", done))
	}
	if got := written(t, l); got != "0 1 2 3 4 5 6 7 8 9" {
		t.Errorf("written was %s", got)
	}
}
