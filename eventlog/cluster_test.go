package eventlog_test

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

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// nodes are three servers of one cluster, in this process.
type nodes struct {
	*natstest.Cluster
	t *testing.T
}

// startNodes starts a cluster and returns a log on it with so many copies of all.
func startNodes(t *testing.T, copies int) (*nodes, *eventlog.Log) {
	t.Helper()
	n := &nodes{natstest.StartCluster(t), t}
	nc, err := nats.Connect(n.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	logtest.Must(t, err)
	t.Cleanup(nc.Close)
	return n, logtest.Open(t, nc, eventlog.Config{Replicas: copies})
}

const docBucket = "thread_docs"

// docFence writes the documents of a bucket.
type docFence struct {
	derived.Fence
	bucket streams.Bucket
}

// newDocFence begins to write the documents of docBucket.
func newDocFence(t *testing.T, l *eventlog.Log) docFence {
	t.Helper()
	b := l.Bucket(docBucket)
	f, err := derived.NewFence(t.Context(), l.Streams(), b.Stream())
	logtest.Must(t, err)
	return docFence{f, b}
}

func (f docFence) put(t *testing.T, key string, data []byte) error {
	return f.Send(t.Context(), f.bucket.Subject(key), nil, data)
}

func (f docFence) finalPut(t *testing.T, key string, data []byte) error {
	return f.Final(t.Context(), f.bucket.Subject(key), nil, data)
}

// putKey sends a document that holds its own key, without waiting.
func (f docFence) putKey(t *testing.T, key string) error { return f.put(t, key, []byte(key)) }

// writtenKeys returns the keys that putKey has written, in the order of the messages.
func writtenKeys(t *testing.T, l *eventlog.Log) string {
	t.Helper()
	got, err := l.Bucket(docBucket).Range(t.Context(), ">", 0, 1<<20)
	logtest.Must(t, err)
	keys := make([]string, len(got))
	for i, m := range got {
		keys[i] = m.Subject
	}
	return strings.Join(keys, " ")
}

// relayTo relays until the timeline shows a commit.
func relayTo(t *testing.T, l *eventlog.Log, seq uint64) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- timeline.Of(l).Relay(ctx) }()
	err := timeline.Of(l).Await(ctx, seq, natstest.Patience)
	cancel()
	return errors.Join(err, natstest.Within(t, "the relay to end", ended))
}

// follower returns a server that does not lead a stream, while another does.
func (n *nodes) follower(stream string) int {
	n.t.Helper()
	follower := -1
	natstest.Eventually(n.t, "a server that follows "+stream, func() bool {
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

// copies returns what each server has of a stream.
func (n *nodes) copies(stream string) [3]string {
	var out [3]string
	for i, s := range n.Servers {
		account, err := s.LookupAccount(server.DEFAULT_GLOBAL_ACCOUNT)
		logtest.Must(n.t, err)
		// The server shows a stream's state to its leader only; its health page shows
		// all.
		page, err := s.Jsz(&server.JSzOptions{Account: account.Name, Accounts: true, Streams: true})
		logtest.Must(n.t, err)
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
func TestCluster_ReturningReplicaCatchesUp(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes much")
	}
	n, l := startNodes(t, 3)
	logtest.Must(t, assets.EnsureBucket(t.Context(), l.Streams(), docBucket))
	f := newDocFence(t, l)
	for i := range 10 {
		logtest.Must(t, f.putKey(t, fmt.Sprint("before", i)))
	}
	logtest.Must(t, f.Flush(t.Context()))
	stream := "KV_" + docBucket
	away := n.follower(stream)
	n.Stop(away)
	natstest.Eventually(t, "a connection to another server", func() bool {
		return l.Conn().IsConnected() && l.Conn().ConnectedServerName() != n.Name(away)
	})
	big := make([]byte, 512<<10)
	for i := range 40 {
		logtest.Must(t, f.put(t, fmt.Sprint("big", i%3), big))
	}
	logtest.Must(t, f.Flush(t.Context()))
	n.Start(away)
	natstest.Eventually(t, "the copy has caught up", func() bool {
		return n.Servers[away].JetStreamIsStreamCurrent(server.DEFAULT_GLOBAL_ACCOUNT, stream)
	})
	for i := range 100 {
		logtest.Must(t, f.putKey(t, fmt.Sprint("after", i)))
		if i%7 == 0 {
			logtest.Must(t, f.Flush(t.Context()))
		}
	}
	logtest.Must(t, f.Flush(t.Context()))
	var got [3]string
	deadline := time.Now().Add(natstest.Patience)
	for got = n.copies(stream); got[0] != got[1] || got[1] != got[2]; got = n.copies(stream) {
		if time.Now().After(deadline) {
			t.Fatalf("the copies differ: %v (the first of them: n%d was away)", got, away+1)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Log(got)
}

// The fence of a replicated stream keeps what that of a single copy keeps.
func TestCluster_FenceKeepsOrderAndFencesOff(t *testing.T) {
	_, l := startNodes(t, 3)
	logtest.Must(t, assets.EnsureBucket(t.Context(), l.Streams(), docBucket))
	old := newDocFence(t, l)
	var want []string
	for i := range 3*500 + 100 {
		want = append(want, fmt.Sprint(i))
		logtest.Must(t, old.putKey(t, want[i]))
	}
	logtest.Must(t, old.Flush(t.Context()), old.Flush(t.Context()))
	if got := writtenKeys(t, l); got != strings.Join(want, " ") || old.Last() != uint64(len(want)) {
		t.Errorf("the order is lost, or the end (%d): %.100s", old.Last(), got)
	}
	young := newDocFence(t, l)
	logtest.Must(t, young.putKey(t, "b0"), young.Flush(t.Context()))
	for i := range 5 {
		logtest.Must(t, old.putKey(t, fmt.Sprint("a", i)), young.putKey(t, fmt.Sprint("b", i+1)))
	}
	logtest.Must(t, young.Flush(t.Context()))
	err := old.Flush(t.Context())
	if !streams.IsFenced(err) {
		t.Errorf("the one that was replaced: %v", err)
	}
	if err := old.putKey(t, "late"); !streams.IsFenced(err) {
		t.Errorf("after that: %v", err)
	}
	if got := writtenKeys(t, l); !strings.HasSuffix(got, " 1599 b0 b1 b2 b3 b4 b5") {
		t.Errorf("written was %s", got[len(got)-60:])
	}
}

// lagging answers every other direct get of a stream as an empty copy does, in addition
// to the server's own reply; the first one counts.
func (n *nodes) lagging(stream string) {
	n.t.Helper()
	nc := natstest.Dial(n.t, n.Servers[0].ClientURL())
	asked := 0
	_, err := nc.Subscribe("$JS.API.DIRECT.GET."+stream, func(m *nats.Msg) {
		if asked++; asked%2 == 0 {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"404"}, "Description": {"No Results"}}})
		}
	})
	logtest.Must(n.t, err)
	logtest.Must(n.t, nc.Flush())
}

// What was written is read at once, also where a copy answers that lags: a commit
// by its sequence, the last of a thread, all of it, what a query was promised of
// documents, and where the timeline stands.
func TestCluster_ReadsAreNotStale(t *testing.T) {
	n, l := startNodes(t, 3)
	other := logtest.Sibling(t, l)
	logtest.Must(t, assets.EnsureBucket(t.Context(), l.Streams(), docBucket))
	for _, stream := range []string{l.Config().Names.Stream(assets.LogStream), l.Config().Names.Stream(assets.TimelineStream), "KV_" + docBucket} {
		n.lagging(stream)
	}
	fence := newDocFence(t, l)
	for i := range 40 {
		w := logtest.NewAuthor(i).Next(t, 1)
		c := w.Commit
		logtest.Must(t, l.Append(t.Context(), w), relayTo(t, l, c.Seq))
		ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
		got, err := other.Get(ctx, c.Seq)
		logtest.Must(t, err)
		last, err := other.Last(ctx, c.Tenant, c.Thread)
		logtest.Must(t, err)
		if got == nil || last == nil || got.Chain != c.Chain || last.Seq != c.Seq {
			t.Fatalf("commit %d is not read (%t), or not as the last (%t)", c.Seq, got != nil, last != nil)
		}
		commits := 0
		for _, err := range other.Thread(ctx, c.Tenant, c.Thread, 1) {
			logtest.Must(t, err)
			commits++
		}
		key := fmt.Sprint("k", i)
		logtest.Must(t, fence.finalPut(t, key, []byte(key)))
		other.Bucket(docBucket).Shows(fence.Last())
		found, err := other.Bucket(docBucket).Get(ctx, key)
		logtest.Must(t, err)
		all, err := other.Bucket(docBucket).Range(ctx, ">", 1, 1000)
		logtest.Must(t, err)
		if commits != 1 || len(found) != 1 || len(all) != i+1 {
			t.Fatalf("%d commits, %d documents, %d of %d documents", commits, len(found), len(all), i+1)
		}
		if at, err := timeline.Of(other).LastSeq(ctx); err != nil || at != c.Seq {
			t.Fatalf("the timeline stands at %d, not %d: %v", at, c.Seq, err)
		}
		cancel()
	}
	if found, err := other.Bucket(docBucket).Get(t.Context(), "none", "none.*"); err != nil || len(found) != 0 {
		t.Errorf("what is not there: %v, %v", found, err)
	}
}

// A cluster acknowledges a commit a moment before it accepts the next one of the same
// thread. A caller that writes at once has no conflict with itself.
func TestCluster_AppendsToOneThreadWithoutConflict(t *testing.T) {
	_, l := startNodes(t, 3)
	logtest.NewAuthor(1).Write(t, l, 1000, 1)
}

// One copy becomes three: the log is kept, derived streams are re-created in the
// way that three copies are stored, and the timeline is filled again.
func TestCluster_OneReplicaBecomesThree(t *testing.T) {
	_, l := startNodes(t, 1)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 5, 2)
	logtest.Must(t, relayTo(t, l, 5))
	cfg := l.Config()
	cfg.Replicas = 3
	more := logtest.Open(t, l.Conn(), cfg)
	for name, derived := range map[string]bool{assets.LogStream: false, assets.TimelineStream: true, assets.CommandStream: false, assets.RunStream: true} {
		stream, err := more.JetStream().Stream(t.Context(), more.Config().Names.Stream(name))
		logtest.Must(t, err)
		got := stream.CachedInfo().Config
		if got.Replicas != 3 || got.Compression != jetstream.NoCompression || got.PersistMode == jetstream.AsyncPersistMode || derived && stream.CachedInfo().State.Msgs > 0 {
			t.Errorf("%s: %d copies, compression %v, persist mode %v, %d messages", name, got.Replicas, got.Compression, got.PersistMode, stream.CachedInfo().State.Msgs)
		}
	}
	a.Write(t, more, 5, 2)
	logtest.Must(t, relayTo(t, more, 10))
	n := 0
	for _, err := range timeline.Of(more).Messages(t.Context(), "*", "*") {
		logtest.Must(t, err)
		n++
	}
	if commits := logtest.History(t, more); len(commits) != 10 || n != 20 {
		t.Errorf("%d commits, %d events on the timeline", len(commits), n)
	}
}

// A fence of a cluster waits where nobody hears it, as after an election.
func TestCluster_FenceWaitsForResponders(t *testing.T) {
	n, l := startNodes(t, 3)
	logtest.Must(t, assets.EnsureBucket(t.Context(), l.Streams(), docBucket))
	for _, many := range []int{1, 10} {
		f := newDocFence(t, l)
		for i := range many {
			logtest.Must(t, f.putKey(t, fmt.Sprint(i)))
		}
		subject := "$KV." + docBucket + ".*"
		for _, s := range n.Servers {
			logtest.Must(t, s.GlobalAccount().AddMapping(subject, "nobody"))
		}
		if _, err := l.Conn().RequestWithContext(t.Context(), "$KV."+docBucket+".x", nil); !errors.Is(err, nats.ErrNoResponders) {
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
		logtest.Must(t, natstest.Within(t, "the end of the flush", done))
	}
	if got := writtenKeys(t, l); got != "0 1 2 3 4 5 6 7 8 9" {
		t.Errorf("written was %s", got)
	}
}
