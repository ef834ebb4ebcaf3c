//go:build !race

package rest_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// They measure memory, which the race detector multiplies.

// crowd is many raw connections, which cost this process nothing but their descriptors.
type crowd struct {
	t     testing.TB
	host  string
	conns []net.Conn
}

// connect opens n connections that have each sent a request and read the headers of its answer.
func (s *site) connect(n int, request func(n int) string) *crowd {
	s.t.Helper()
	c := &crowd{t: s.t, host: strings.TrimPrefix(s.url, "http://")}
	s.t.Cleanup(c.close)
	in := bufio.NewReaderSize(nil, 4<<10)
	for i := range n {
		conn, err := net.Dial("tcp", c.host)
		s.Must(err)
		c.conns = append(c.conns, conn)
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nSkein-Tenant: acme\r\n\r\n", request(i), c.host)
		s.Must(err)
		in.Reset(conn)
		r, err := http.ReadResponse(in, nil)
		s.Must(err)
		if r.StatusCode != http.StatusOK {
			s.t.Fatalf("connection %d: %s", i, r.Status)
		}
		if r.ContentLength > 0 {
			s.Must(r.Body.Close()) // reads it
		}
	}
	return c
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// inUse returns the memory of heap and stacks, in bytes, and the number of goroutines.
func inUse() (bytes, goroutines int) {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// needFiles skips a test where the process may not open so many files.
func needFiles(t *testing.T, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < n {
		t.Skipf("the process may open %d files, and needs %d", limit.Cur, n)
	}
}

// settled waits until there are at most so many goroutines.
func settled(t *testing.T, most int) (goroutines int) {
	t.Helper()
	for {
		if _, goroutines = inUse(); goroutines <= most {
			return goroutines
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%d goroutines are left, of %d at first", goroutines, most)
		}
	}
}

// 2,000 streams of 100 threads are open at once on one process. Each costs two goroutines and some
// tens of kilobytes; all of them get what is written, and nothing of them is left.
func TestThreadEvents_TwoThousandStreams(t *testing.T) {
	const streams, threads = 2000, 100
	needFiles(t, 2*streams+500)
	s := start(t)
	var list []string
	for range threads {
		list = append(list, s.thread())
	}
	warm := s.connect(threads, func(n int) string { return list[n] + "/events?from=2" })
	warm.close()
	bytes, goroutines := inUse()
	c := s.connect(streams, func(n int) string { return list[n%threads] + "/events?from=2" })
	more, running := inUse()
	each, routines := (more-bytes)/streams, float64(running-goroutines)/streams
	t.Logf("a stream takes %d bytes and %.2f goroutines", each, routines)
	if each > 64<<10 || routines > 2.2 {
		t.Errorf("a stream takes %d bytes and %.2f goroutines; want at most 64 KiB and 2", each, routines)
	}
	for _, thread := range list {
		s.say(thread)
	}
	in := bufio.NewReaderSize(nil, 4<<10)
	for n, conn := range c.conns {
		in.Reset(conn)
		for line := ""; line != "id: 3\n"; {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatalf("stream %d: %v", n, err)
			}
		}
	}
	c.close()
	settled(t, goroutines+50)
}

// 5,000 connections wait for a next request, and nobody else notices.
func TestConnections_FiveThousandIdle(t *testing.T) {
	const idle = 5000
	needFiles(t, 2*idle+500)
	s := start(t)
	thread := s.thread()
	s.connect(10, func(int) string { return thread })
	bytes, goroutines := inUse()
	s.connect(idle, func(int) string { return thread })
	more, running := inUse()
	each, routines := (more-bytes)/idle, float64(running-goroutines)/idle
	t.Logf("an idle connection takes %d bytes and %.2f goroutines", each, routines)
	if each > 32<<10 || routines > 1.1 {
		t.Errorf("an idle connection takes %d bytes and %.2f goroutines; want at most 32 KiB and 1", each, routines)
	}
	s.ask("GET", thread, "").want(http.StatusOK)
}
