package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"
)

// Interval is a part of a case: a case that slows down shows where.
type Interval struct {
	Seconds          float64 `json:"seconds"` // since the case began, at its end
	Commits          int     `json:"commits"` // stored within it
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	Micros           float64 `json:"processorMicros"` // of server and Skein for each commit
	GCMicros         float64 `json:"gcMicros"`        // of these, the garbage collector's
	HeapMB           float64 `json:"heapMB"`          // live after the last collection
	ReadModelLag     uint64  `json:"readModelLag"`    // commits
}

// watch measures intervals of a case until stop is called, and profiles each where the run is to
// be profiled: the profile of the nth goes to the file with .n at its end.
func (b *bench) watch(ctx context.Context, profiled bool) (stop func() ([]Interval, error), err error) {
	if b.o.Interval <= 0 {
		return func() ([]Interval, error) { return nil, nil }, nil
	}
	first, err := b.mark(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var found []Interval
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		found, failed = b.intervals(ctx, first, profiled)
	}()
	return func() ([]Interval, error) {
		cancel()
		<-ended
		return found, failed
	}, nil
}

// intervals measures until the context ends, which also ends the last one.
func (b *bench) intervals(ctx context.Context, last mark, profiled bool) (found []Interval, err error) {
	begun, reading := last.at, context.WithoutCancel(ctx)
	tick := time.NewTicker(time.Duration(b.o.Interval * float64(time.Second)))
	defer tick.Stop()
	for err == nil {
		stop := func() error { return nil }
		if profiled {
			if stop, err = startProfile(fmt.Sprintf("%s.%d", b.o.Profile, len(found)+1)); err != nil {
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			now, err := b.mark(reading)
			if now.seq > last.seq {
				found = append(found, now.since(last, begun, b.progress()))
			}
			return found, errors.Join(err, stop())
		}
		var now mark
		now, err = b.mark(reading)
		if err = errors.Join(err, stop()); err != nil {
			break
		}
		found = append(found, now.since(last, begun, b.progress()))
		last = now
	}
	return found, err
}

// mark is what the processes have done until a time.
type mark struct {
	at        time.Time
	seq       uint64        // of the log, a message a commit
	processor time.Duration // of server and Skein
	gc        time.Duration
	heap      uint64
}

func (b *bench) mark(ctx context.Context) (m mark, err error) {
	if m.seq, err = b.log.LastSeq(ctx); err != nil {
		return m, err
	}
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	m.gc = time.Duration((samples[0].Value.Float64() - samples[1].Value.Float64()) * float64(time.Second))
	m.at, m.processor, m.heap = time.Now(), processor(), samples[2].Value.Uint64()
	return m, nil
}

func (m mark) since(last mark, begun time.Time, shown uint64) Interval {
	commits := int(m.seq - last.seq)
	each := float64(max(commits, 1)) * float64(time.Microsecond)
	return Interval{
		Seconds: m.at.Sub(begun).Seconds(), Commits: commits, CommitsPerSecond: float64(commits) / m.at.Sub(last.at).Seconds(),
		Micros: float64(m.processor-last.processor) / each, GCMicros: float64(m.gc-last.gc) / each,
		HeapMB: float64(m.heap) / (1 << 20), ReadModelLag: m.seq - min(shown, m.seq),
	}
}
