package telemetry

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime/telemetry"
)

// An unavailable or refusing collector loses its spans, after a while, and nothing
// else: runs continue, and those that end when it is back are exported.
func TestExporter_UnavailableCollector(t *testing.T) {
	w := newWorld(t)
	w.orders()
	address := natstest.FreeAddress(t)
	w.export(telemetry.Config{Endpoint: "http://" + address, GiveUp: 700 * time.Millisecond})
	_, execution := w.ask("orders", "")
	w.finished(execution)
	w.told("dropped", 7)
	c := newCollector(t)
	no := true
	c.answer = func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if no {
			return http.StatusBadRequest
		}
		return http.StatusOK
	}
	c.overHTTP(address)
	_, execution = w.ask("orders", "")
	w.finished(execution)
	w.told("dropped", 14)
	c.mu.Lock()
	no = false
	c.mu.Unlock()
	_, execution = w.ask("orders", "")
	if got := drawing(c.run(execution)); got != ordersTree {
		t.Errorf("the trace is\n%s", got)
	}
	w.told("exported", 7)
	w.told("dropped", 14)
}

// A collector that is unavailable for a moment receives what it missed, once.
func TestExporter_CollectorRecovers(t *testing.T) {
	w := newWorld(t)
	w.orders()
	c := newCollector(t)
	busy := 2
	c.answer = func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if busy--; busy >= 0 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}
	url, _ := c.overHTTP("127.0.0.1:0")
	w.export(telemetry.Config{Endpoint: url})
	_, execution := w.ask("orders", "")
	if got := drawing(c.run(execution)); got != ordersTree {
		t.Errorf("the trace is\n%s", got)
	}
	w.told("dropped", 0)
}

// A collector that does not answer loses its spans too, and nothing else: the position
// advances, and stopping the exporter does not wait for it.
func TestExporter_HangingCollector(t *testing.T) {
	w := newWorld(t)
	w.orders()
	c := newCollector(t)
	release := make(chan struct{})
	hanging := make(chan struct{}, 10)
	c.answer = func() int {
		hanging <- struct{}{}
		<-release
		return http.StatusOK
	}
	url, _ := c.overHTTP("127.0.0.1:0")
	t.Cleanup(func() { close(release) }) // before the server is closed, which waits for it
	stop := w.export(telemetry.Config{Endpoint: url, GiveUp: 500 * time.Millisecond})
	_, execution := w.ask("orders", "")
	w.finished(execution)
	w.told("dropped", 7)
	<-hanging
	stop()
	stop = w.export(telemetry.Config{Endpoint: url, GiveUp: time.Hour})
	_, execution = w.ask("orders", "")
	w.finished(execution)
	<-hanging
	began := time.Now()
	stop()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the stop took %v", took)
	}
	w.told("dropped", 7) // the first run is not sent again, the second is not lost
	p := w.position()
	last, err := w.log.LastSeq(t.Context())
	if err != nil || p.Seq() == 0 || p.Seq() >= last {
		t.Errorf("the position is %d, the log's end %d (%v)", p.Seq(), last, err)
	}
}

// ends calls a function when it is told of spans.
type ends func()

func (e ends) Spans(string, int) { e() }

// What was sent is not sent again if the exporter is stopped before it has saved its
// position.
func TestExporter_StopAfterSending(t *testing.T) {
	w := newWorld(t)
	w.orders()
	c := newCollector(t)
	url, _ := c.overHTTP("127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x, err := telemetry.New(w.open(), telemetry.Config{Endpoint: url, Linger: 10 * time.Millisecond}, zerolog.Nop(), ends(cancel))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- x.Run(ctx) }()
	w.ask("orders", "")
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if w.position().Seq() == 0 {
		t.Error("there is no position")
	}
}
