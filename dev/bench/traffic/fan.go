package traffic

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

const (
	fanPause = 50 * time.Millisecond // between two events
	fanFirst = 2                     // the version of a thread that was created
)

// fan is a thread whose events many readers get.
type fan struct {
	sent     []atomic.Int64 // when the command of each event was sent, by version
	last     int64
	ready    sync.WaitGroup // of the readers
	reading  sync.WaitGroup
	failures chan error
}

// fanOut writes events of a thread, one after another, that many readers get. What is measured is
// the time from sending the command to each reader's having the event.
func (h *Work) fanOut(ctx context.Context, nc *nats.Conn) (*Times, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	f := &fan{last: int64(fanFirst + h.Events), failures: make(chan error, h.Readers+1)}
	f.sent = make([]atomic.Int64, f.last+1)
	late := make([][]int64, h.Readers)
	f.ready.Add(h.Readers)
	open := make(chan struct{}, 64) // readers connect a few at a time
	for n := range h.Readers {
		f.reading.Go(func() {
			open <- struct{}{}
			ready := sync.OnceFunc(func() {
				<-open
				f.ready.Done()
			})
			defer ready()
			read := f.readHTTP
			if h.URL == "" {
				read = f.readNATS
			}
			mine := make([]int64, 0, h.Events)
			err := read(ctx, h, nc.ConnectedUrl(), ready, func(version int64) bool {
				if version > fanFirst && version <= f.last {
					mine = append(mine, time.Now().UnixNano()-f.sent[version].Load())
				}
				return version < f.last
			})
			if err != nil {
				f.failures <- err
			}
			late[n] = mine
		})
	}
	f.ready.Wait()
	start := time.Now()
	o := h.overNATS(nc)
	for version := int64(fanFirst + 1); version <= f.last && len(f.failures) == 0; version++ {
		f.sent[version].Store(time.Now().UnixNano())
		if _, err := o.command(ctx, 0, "item.create", fmt.Sprintf(`{"threadId":%q,"data":%s}`, h.Threads[0], benchItem)); err != nil {
			cancel()
			f.reading.Wait()
			return nil, err
		}
		select {
		case <-time.After(fanPause):
		case <-ctx.Done():
		}
	}
	f.reading.Wait()
	select {
	case err := <-f.failures:
		return nil, fmt.Errorf("a reader: %w", err)
	default:
	}
	out := &Times{Elapsed: time.Since(start).Nanoseconds()}
	for _, mine := range late {
		out.Whole = append(out.Whole, mine...)
	}
	if want := h.Readers * h.Events; len(out.Whole) != want {
		return nil, fmt.Errorf("%d events were received, of %d", len(out.Whole), want)
	}
	return out, nil
}

// readHTTP reads server-sent events on a connection of its own, until saw returns false.
func (f *fan) readHTTP(ctx context.Context, h *Work, _ string, ready func(), saw func(version int64) bool) error {
	c := newHTTPClient(1)
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL+"/api/threads/"+h.Threads[0]+"/events", nil)
	if err != nil {
		return err
	}
	r, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", r.StatusCode)
	}
	lines := bufio.NewReaderSize(r.Body, 4<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // data, which nothing is read of
		}
		if err != nil {
			return err
		}
		id, ok := bytes.CutPrefix(line, []byte("id: "))
		if !ok {
			continue
		}
		version, err := strconv.ParseInt(string(bytes.TrimSpace(id)), 10, 64)
		if err != nil {
			return err
		}
		if version == fanFirst {
			ready()
		}
		if !saw(version) {
			return nil
		}
	}
}

// readNATS subscribes to the thread's timeline on a connection of its own, until saw returns false.
func (f *fan) readNATS(ctx context.Context, h *Work, url string, ready func(), saw func(version int64) bool) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	sub, err := nc.SubscribeSync(events.DefaultNames().Timeline(h.Tenant, h.Threads[0], ">"))
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		return err
	}
	ready()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		_, rest, _ := bytes.Cut(m.Data, []byte(`"threadversion":`))
		digits := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		version, err := strconv.ParseInt(string(rest[:max(digits, 0)]), 10, 64)
		if err != nil {
			return fmt.Errorf("an event without a version: %.300s", m.Data)
		}
		if !saw(version) {
			return nil
		}
	}
}
