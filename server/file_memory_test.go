package server_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// How much a file of any size may cost: a process of Skein, and nats-server on
// top of it, which keeps blocks of 8 MB of its store in memory, for longer on a
// loaded machine, and what a client has not read yet.
const (
	ownMemory    = 64 << 20
	serverMemory = 224 << 20
)

// fileSize is that of the file: 384 MB, a third of it under the race detector, or what
// SKEIN_TEST_FILE_MB says.
func fileSize() int64 {
	if mb, err := strconv.ParseInt(os.Getenv("SKEIN_TEST_FILE_MB"), 10, 64); err == nil {
		return mb << 20
	}
	if raced {
		return 128 << 20
	}
	return 384 << 20
}

// aloneStore names the store of the nats-server that runs in a process of its own.
const aloneStore = "SKEIN_TEST_NATS_STORE"

// TestServeNATSAlone is the other process of TestMemoryDoesNotGrowWithAFile.
func TestServeNATSAlone(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(aloneStore)
	if dir == "" {
		t.Skip("runs only within TestMemoryDoesNotGrowWithAFile")
	}
	fmt.Println("url " + natstest.Start(t, natstest.StoreDir(dir)).URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
}

// natsAlone runs a nats-server in a process of its own, and returns its URL.
func natsAlone(t *testing.T) string {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestServeNATSAlone$", "-test.v")
	child.Env = append(os.Environ(), aloneStore+"="+t.TempDir())
	in := must(child.StdinPipe())(t)
	out := must(child.StdoutPipe())(t)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait() // it ends by itself
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "url "); ok {
			return url
		}
	}
	t.Fatal("the nats-server of its own did not start")
	return ""
}

// SA-135: a file of many times the bound goes in and out. The heap of a process
// that is client and service in one, garbage and all, grows by less than 64 MB.
// What lives in the heap of one that embeds the server is bounded too.
func TestMemoryDoesNotGrowWithAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 384 MB twice")
	}
	t.Run("separate", func(t *testing.T) {
		w := startWorld(t, server.Config{NATS: natsAlone(t), HTTPListen: "127.0.0.1:0"}, "acme")
		heap := func() uint64 {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return stats.HeapAlloc
		}
		runtime.GC()
		left := heap() // by other tests: the collector lets as much garbage be as there lives
		carry(t, w, ownMemory+left, heap)
	})
	t.Run("embedded", func(t *testing.T) {
		if raced {
			t.Skip("a file that is larger than the bound takes long under the race detector: make test-long runs it")
		}
		cfg := store(t)
		cfg.Volatile = true // the disk's speed is not what is tested
		carry(t, startWorld(t, cfg, "acme"), ownMemory+serverMemory, func() uint64 {
			live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			metrics.Read(live)
			return live[0].Value.Uint64()
		})
	})
}

// carry writes and reads a file, and measures meanwhile.
func carry(t *testing.T, w *world, bound uint64, measure func() uint64) {
	f := w.newFiles()
	must(f.WriteFile(t.Context(), "/warm", noise(2<<20, 1), "", client.WriteFileOptions{}))(t)
	must(f.ReadFile(t.Context(), "/warm"))(t)
	for range 2 {
		runtime.GC()
	}
	before := measure()
	peak := highest(measure, func() { inAndOut(t, f) })
	t.Logf("%d MB before, at most %d MB", before>>20, peak>>20)
	if peak > before+bound {
		t.Errorf("memory grew from %d to %d MB", before>>20, peak>>20)
	}
}

// highest returns the highest value that was measured while do ran.
func highest(measure func() uint64, do func()) (peak uint64) {
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				peak = max(peak, measure())
			}
		}
	})
	func() {
		defer watching.Wait()
		defer close(stop)
		do()
	}()
	return peak
}

// inAndOut writes the file and reads it.
func inAndOut(t *testing.T, f *client.Files) {
	size := fileSize()
	sent, begin := sha256.New(), time.Now()
	source := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{7}), size), sent)
	record := must(f.WriteFileFrom(t.Context(), "/big", source, "", client.WriteFileOptions{}))(t)
	wrote := time.Since(begin)
	got, n := sha256.New(), int64(0)
	begin = time.Now()
	for chunk, err := range must(f.ReadFileStream(t.Context(), "/big"))(t) {
		if err != nil {
			t.Fatal(err)
		}
		got.Write(chunk.Data)
		n += int64(len(chunk.Data))
	}
	t.Logf("%d MB in at %.0f MB/s, out at %.0f MB/s", size>>20, float64(size)/1e6/wrote.Seconds(), float64(size)/1e6/time.Since(begin).Seconds())
	digest := hex.EncodeToString(sent.Sum(nil))
	if n != size || record.Digest != digest || hex.EncodeToString(got.Sum(nil)) != digest {
		t.Errorf("%d bytes of %d came out, or others", n, size)
	}
}
