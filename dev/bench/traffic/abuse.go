package traffic

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Ways to abuse HTTP.
const (
	LargeBodies  = "large-bodies"   // of nearly 4 MB, each of which is refused for what is in it
	Malformed    = "malformed-json" // bodies that end in the middle of a value
	DeepBodies   = "deep-json"      // bodies of 10,000 levels
	UnreadStream = "unread-streams" // streams of a long thread, of which nothing is read
	SlowBodies   = "slow-bodies"    // bodies of which a byte comes at a time
	SmallFiles   = "files"          // files of 1 MiB
	EmptyStreams = "empty-streams"  // streams of a long history of which nothing is shown
	WatchThread  = "watched-thread" // sockets that show a long thread, which changes
	AllAbuse     = "all"            // the clients are divided among the others
)

// Abuses lists the ways, all of them together last.
func Abuses() []string {
	return []string{LargeBodies, Malformed, DeepBodies, UnreadStream, SlowBodies, SmallFiles, EmptyStreams, WatchThread, AllAbuse}
}

const (
	deepLevels   = 10_000
	largeBody    = 4<<20 - 4096 // just below the limit
	unreadEach   = 8            // open streams of a client
	unreadPause  = 20 * time.Millisecond
	unreadItems  = 40 // so that the thread's document fits into an answer
	unreadItem   = 16 << 10
	abusePause   = 10 * time.Millisecond // before a client connects again
	abusePayload = 64 << 10              // written at once, of small requests
)

// Abuse is what clients do that want to slow others down: each sends requests as fast as its
// connection takes them, without waiting for the answers.
type Abuse struct {
	Kind    string `json:"kind"` // one of Abuses
	URL     string `json:"url"`
	Key     string `json:"key"`
	Clients int    `json:"clients"`
}

// Run goes on until ctx ends, and returns how many requests were written, and how often the
// server ended a connection.
func (a Abuse) Run(ctx context.Context) (sent, ended int64, err error) {
	at, err := url.Parse(a.URL)
	if err != nil {
		return 0, 0, err
	}
	thread, err := a.longThread(ctx)
	if err != nil {
		return 0, 0, err
	}
	kinds := []string{a.Kind}
	if a.Kind == AllAbuse {
		kinds = Abuses()[:len(Abuses())-1]
	}
	batches := map[string]batch{} // made once: it is the server that is measured
	for _, kind := range kinds {
		batches[kind] = a.requests(kind)
	}
	var requests, ends atomic.Int64
	var working sync.WaitGroup
	for n := range a.Clients {
		kind := kinds[n%len(kinds)]
		working.Go(func() {
			for ctx.Err() == nil {
				var some int64
				var err error
				switch kind {
				case UnreadStream:
					some, err = unread(ctx, at.Host, a.head("GET", "/api/threads/"+thread+"/events", 0))
				case EmptyStreams:
					some, err = unread(ctx, at.Host, a.head("GET", "/api/events?from=0&types=nothing.here", 0))
				case SlowBodies:
					some, err = trickle(ctx, at.Host, a.head("POST", "/api/commands/thread.create", slowBody))
				case SmallFiles:
					some, err = a.file(ctx, thread)
				case WatchThread:
					some, err = a.watch(ctx, thread, n == 0)
				default:
					some, err = flood(ctx, at.Host, batches[kind])
				}
				requests.Add(some)
				if err != nil && ctx.Err() == nil {
					ends.Add(1)
					pause(ctx, abusePause)
				}
			}
		})
	}
	working.Wait()
	return requests.Load(), ends.Load(), nil
}

// longThread creates a thread for the streams.
func (a Abuse) longThread(ctx context.Context) (string, error) {
	o := overHTTP{http: newHTTPClient(1), url: a.URL, key: a.Key}
	defer o.http.CloseIdleConnections()
	thread, err := o.create(ctx)
	if err != nil {
		return "", err
	}
	item := strings.Replace(benchItem, benchInput, strings.Repeat("x", unreadItem), 1)
	for range unreadItems {
		if _, err := o.ask(ctx, "POST", "/api/threads/"+thread+"/items", item, 201); err != nil {
			return "", err
		}
	}
	return thread, nil
}

// head is a request up to its body.
func (a Abuse) head(method, path string, length int) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		method, path, strings.TrimPrefix(a.URL, "http://"), a.Key, length)
}

// batch is requests that are written at once.
type batch struct {
	bytes []byte
	n     int64 // of requests
}

// requests returns requests of a kind, several if they are small.
func (a Abuse) requests(kind string) batch {
	body := `{"data":{"title":"an order","metadata":{"a":[1,2,{"b":"` + strings.Repeat("x", 512)
	switch kind {
	case LargeBodies:
		body = `{"data":{"unknown":"` + strings.Repeat("x", largeBody) + `"}}`
	case DeepBodies:
		body = strings.Repeat(`{"data":`, deepLevels) + "1" + strings.Repeat("}", deepLevels)
	}
	one := append(a.head("POST", "/api/commands/thread.create", len(body)), body...)
	n := max(1, abusePayload/len(one))
	return batch{bytes.Repeat(one, n), int64(n)}
}

// flood writes requests to one connection until it ends.
func flood(ctx context.Context, address string, b batch) (sent int64, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	for {
		if _, err := conn.Write(b.bytes); err != nil {
			return sent, err
		}
		sent += b.n
	}
}

// unread opens streams, reads nothing of them, and replaces the oldest by another one.
func unread(ctx context.Context, address string, request []byte) (sent int64, err error) {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return sent, err
		}
		if open = append(open, conn); len(open) > unreadEach {
			_ = open[0].Close()
			open = open[1:]
		}
		if _, err := conn.Write(request); err != nil {
			return sent, err
		}
		sent++
		pause(ctx, unreadPause)
	}
	return sent, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
