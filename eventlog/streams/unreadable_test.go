package streams_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// unread is a connection to a server that cannot read a range of the log, and behaves like one: it
// answers no read of many messages of a subject that has some there, because it cannot count them,
// and finds none where it is asked for one of them.
type unread struct {
	*nats.Conn
	first, last uint64              // of the range
	seqs        map[string][]uint64 // of the messages of each subject
	silent      atomic.Int32        // counts the reads that it did not answer
}

func (u *unread) PublishRequest(subject, reply string, body []byte) error {
	var q streams.GetRequest
	if strings.Contains(subject, ".DIRECT.GET.") && json.Unmarshal(body, &q) == nil && q.Next != "" {
		next := true
		for _, seq := range u.seqs[q.Next] {
			if seq < q.Seq {
				continue
			}
			if within := seq >= u.first && seq <= u.last; within && q.Batch > 0 {
				u.silent.Add(1)
				return nil
			} else if within && next {
				q.Next = "nothing.of.it"
			}
			next = false
		}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	return u.Conn.PublishRequest(subject, reply, body)
}

// A block that cannot be read costs one timeout, however many threads have messages in it: what is
// before it in a thread is read, and what is not read is an error, and no end.
func TestReads_OneTimeoutForAnUnreadableBlock(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	const threads, each = 6, 4
	u := &unread{Conn: l.Conn(), seqs: map[string][]uint64{}}
	var list []*logtest.Author
	for n := range threads {
		list = append(list, logtest.NewAuthor(n+1))
	}
	seq := uint64(0)
	name, subjectOf := l.Config().Names.Stream(assets.LogStream), func(n int) string { return l.Config().Names.Log(logtest.Tenant, list[n].Thread) }
	for range each {
		for n, a := range list {
			a.Write(t, l, 1, 1)
			seq++
			u.seqs[subjectOf(n)] = append(u.seqs[subjectOf(n)], seq)
		}
	}
	u.first, u.last = threads/2+1, threads+1 // the first message of the later threads, and the second of the first one
	cfg := l.Streams().Config()
	cfg.Patience = natstest.Patience
	conn, err := streams.OpenOn(u, l.Streams().JetStream(), cfg)
	logtest.Must(t, err)
	defer conn.Close()
	conn.SetReadTimeout(6 * time.Second) // a twentieth of that is long for a read of the readable on any machine
	conn.SetRottenFor(time.Hour)
	read := func(n int) (seqs []uint64, err error) {
		for m, err := range conn.Messages(t.Context(), name, subjectOf(n), 1) {
			if err != nil {
				return seqs, err
			}
			seqs = append(seqs, m.Seq)
		}
		return seqs, nil
	}
	for range 2 {
		for n := threads - 1; n >= 0; n-- {
			want := len(u.seqs[subjectOf(n)])
			if n >= threads/2 {
				want = 0
			} else if n == 0 {
				want = 1
			}
			got, err := read(n)
			var silent *streams.SilentError
			var incomplete *streams.IncompleteError
			if len(got) != want || (err == nil) != (want == each) || err != nil && !errors.As(err, &silent) && !errors.As(err, &incomplete) {
				t.Errorf("thread %d: messages %v of %v, %v", n, got, u.seqs[subjectOf(n)], err)
			}
		}
	}
	if n := u.silent.Load(); n > 3 { // the first, and at most two repetitions where the leader answers others slowly
		t.Errorf("%d reads were waited for and not answered, of %d threads", n, threads)
	}
}

// lastUnread is a connection to a server that knows the last message of each subject, and can read
// none.
type lastUnread struct {
	*nats.Conn
	asked atomic.Int32
}

func (u *lastUnread) PublishRequest(subject, reply string, body []byte) error {
	var q streams.GetRequest
	if !strings.Contains(subject, ".DIRECT.GET.") || json.Unmarshal(body, &q) != nil || len(q.Multi) == 0 {
		return u.Conn.PublishRequest(subject, reply, body)
	}
	u.asked.Add(1)
	return u.Conn.PublishMsg(&nats.Msg{Subject: reply, Header: nats.Header{"Status": {"404"}, "Description": {"Message Not Found"}}})
}

// What the server says that it cannot read is asked for again once, and not of each thread: each
// time it unpacks the whole block.
func TestReads_UnreadableMessagesAreRetriedOnce(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	u := &lastUnread{Conn: l.Conn()}
	conn, err := streams.OpenOn(u, l.Streams().JetStream(), l.Streams().Config())
	logtest.Must(t, err)
	defer conn.Close()
	conn.SetRottenFor(time.Hour)
	const threads, tries = 5, 3
	for n := range threads {
		_, err := conn.Direct(t.Context(), l.Config().Names.Stream(assets.LogStream), streams.GetRequest{Multi: []string{l.Config().Names.Log(logtest.Tenant, logtest.NewAuthor(n+1).Thread)}})
		var incomplete *streams.IncompleteError
		if !errors.As(err, &incomplete) {
			t.Errorf("thread %d: %v", n, err)
		}
	}
	if n := u.asked.Load(); n != tries+threads-1 {
		t.Errorf("%d reads of %d threads, want %d", n, threads, tries+threads-1)
	}
}
