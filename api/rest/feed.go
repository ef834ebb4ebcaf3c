package rest

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// What a feed keeps of a thread, for readers that are a little behind. Others read the log.
const (
	tailEvents = 256
	tailBytes  = 2 << 20 // each event twice: as data, and as a server-sent event
)

// feeds are the threads that somebody follows now: one subscription each, however many readers
// there are.
type feeds struct {
	mu   sync.Mutex // guards open, and readers of each feed
	open map[feedName]*feed
}

// feedName names a feed. A principal that may not use all threads has feeds of its own, in
// its scope: what it is shown may change without an event.
type feedName struct{ tenant, scope, thread string }

// scopeOf returns the scope of a principal, empty if it may use all threads.
func scopeOf(p edge.Principal) string {
	if p.User == "" && len(p.Threads) == 0 {
		return ""
	}
	return p.Subject + " " + p.User
}

func newFeeds() *feeds { return &feeds{open: map[feedName]*feed{}} }

// feed is the end of a thread's history, as it grows.
type feed struct {
	all     *feeds
	name    feedName
	readers int
	cancel  context.CancelFunc
	ready   chan struct{} // closed when it follows the thread, or failed to
	base    int64         // later events of the log than this sequence are in the tail; set before ready

	mu    sync.Mutex
	tail  []entry
	bytes int
	news  chan struct{} // closed, and replaced, when the tail grows or the feed ends
	err   error         // why it ended
}

// entry is an event of a feed.
type entry struct {
	version int64
	kind    events.Type
	data    []byte       // the CloudEvent
	frame   stream.Frame // the same as a server-sent event, encoded
}

func newEntry(version int64, kind events.Type, data []byte) entry {
	frame := stream.Frame{ID: strconv.FormatInt(version, 10), Name: string(kind), Data: data}.Encoded()
	return entry{version: version, kind: kind, data: data, frame: frame}
}

// size returns how many bytes an entry has in memory.
func (e entry) size() int { return len(e.data) + len(e.frame.Bytes()) }

// join returns the feed of a thread. Leave it. The first reader's client subscribes.
func (f *feeds) join(ctx context.Context, c *client.Client, scope, thread string) (*feed, error) {
	name := feedName{c.Tenant(), scope, thread}
	f.mu.Lock()
	one := f.open[name]
	if one == nil {
		var running context.Context
		one = &feed{all: f, name: name, ready: make(chan struct{}), news: make(chan struct{})}
		running, one.cancel = context.WithCancel(context.Background())
		f.open[name] = one
		go one.follow(running, c)
	}
	one.readers++
	f.mu.Unlock()
	select {
	case <-one.ready:
	case <-ctx.Done():
		one.leave()
		return nil, context.Cause(ctx)
	}
	one.mu.Lock()
	err := one.err
	one.mu.Unlock()
	if err != nil {
		one.leave()
		return nil, err
	}
	return one, nil
}

// leave ends a reader. The last one ends the subscription.
func (one *feed) leave() {
	one.all.mu.Lock()
	defer one.all.mu.Unlock()
	if one.readers--; one.readers == 0 {
		one.remove()
	}
}

// remove takes a feed out, so that the next reader opens another. The caller holds all.mu.
func (one *feed) remove() {
	one.cancel()
	if one.all.open[one.name] == one {
		delete(one.all.open, one.name)
	}
}

// follow fills the tail until the last reader has left, or the connection is lost for good.
func (one *feed) follow(ctx context.Context, c *client.Client) {
	timeline, err := c.Timeline(ctx, client.SubscribeOptions{Thread: one.name.thread, From: client.Now()})
	if err == nil {
		defer timeline.Close()
		one.base, err = c.HistoryEnd(ctx)
	}
	if err != nil {
		one.end(err)
		close(one.ready)
		return
	}
	close(one.ready)
	for {
		e, err := timeline.Next(ctx)
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken): // its versions are missing in the log as well
			continue
		case err != nil:
			one.end(err)
			return
		}
		one.add(newEntry(e.Version, e.Type, e.Raw()))
	}
}

// end ends a feed. Its readers join another, with clients of their own.
func (one *feed) end(err error) {
	one.all.mu.Lock()
	one.remove()
	one.all.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	one.err = err
	close(one.news)
}

func (one *feed) add(e entry) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.tail, one.bytes = append(one.tail, e), one.bytes+e.size()
	drop := 0
	for len(one.tail)-drop > 1 && (len(one.tail)-drop > tailEvents || one.bytes > tailBytes) {
		one.bytes -= one.tail[drop].size()
		drop++
	}
	if drop > 0 { // into an array of its own: readers hold the old one
		one.tail = append(make([]entry, 0, tailEvents+1), one.tail[drop:]...)
	}
	close(one.news)
	one.news = make(chan struct{})
}

// view is the state of a feed after a version.
type view struct {
	entries []entry // what follows, if nothing is missing
	missing bool    // something before the tail: read the log
	last    int64   // the version of the last event, 0 if there was none
	news    <-chan struct{}
	err     error
}

func (one *feed) after(version int64) view {
	one.mu.Lock()
	defer one.mu.Unlock()
	v := view{news: one.news, err: one.err}
	if len(one.tail) == 0 {
		return v
	}
	v.last = one.tail[len(one.tail)-1].version
	v.missing = one.tail[0].version > version+1
	for i, e := range one.tail {
		if e.version > version {
			v.entries = one.tail[i:len(one.tail):len(one.tail)]
			break
		}
	}
	return v
}
