package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
)

// onFreePort is the durable options on a free port.
func onFreePort(dir string) embedded.Options {
	o := embedded.NewOptions(dir)
	o.Listen = "127.0.0.1:0"
	return o
}

func TestConnectsOverTCPAndInProcess(t *testing.T) {
	s := natstest.Start(t)
	listener := natstest.Connect(t, s)
	sub, err := listener.SubscribeSync("greeting")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Flush(); err != nil {
		t.Fatal(err)
	}
	speaker, err := s.ConnectInProcess("speaker")
	if err != nil {
		t.Fatal(err)
	}
	defer speaker.Close()
	if got := speaker.Opts.Name; got != "speaker" {
		t.Errorf("connection name is %q, want speaker", got)
	}
	if err := speaker.Publish("greeting", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	msg, err := sub.NextMsg(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if string(msg.Data) != "hello" {
		t.Errorf("got %q, want hello", msg.Data)
	}
	if got := listener.MaxPayload(); got != int64(embedded.DefaultMaxPayload) {
		t.Errorf("max payload is %d, want %d", got, embedded.DefaultMaxPayload)
	}
}

func TestStoreOutlivesTheServer(t *testing.T) {
	dir := t.TempDir()
	first := natstest.Start(t, natstest.StoreDir(dir), natstest.SyncAlways())
	publishOne(t, natstest.Connect(t, first), "kept")
	first.Shutdown()
	first.Shutdown() // Again is harmless.

	second := natstest.Start(t, natstest.StoreDir(dir))
	if got := readOne(t, natstest.Connect(t, second)); got != "kept" {
		t.Errorf("after a restart the stream holds %q, want kept", got)
	}
}

func TestSecondServerOnAStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := natstest.Start(t, natstest.StoreDir(dir))
	publishOne(t, natstest.Connect(t, first), "mine")

	_, err := embedded.Start(onFreePort(dir))
	var inUse *embedded.StoreInUseError
	if !errors.As(err, &inUse) {
		t.Fatalf("second start: got %v, want a StoreInUseError", err)
	}
	if inUse.Dir != dir || inUse.PID != os.Getpid() {
		t.Errorf("got %+v, want dir %s and pid %d", *inUse, dir, os.Getpid())
	}
	if got := readOne(t, natstest.Connect(t, first)); got != "mine" {
		t.Errorf("the first server now holds %q, want mine", got)
	}

	first.Shutdown()
	natstest.Start(t, natstest.StoreDir(dir)) // The lock is free again.
}

func TestTakenPortLeavesTheStoreAlone(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := filepath.Join(t.TempDir(), "store")
	o := embedded.NewOptions(dir)
	o.Listen = taken.Addr().String()

	_, err = embedded.Start(o)
	var portTaken *embedded.PortTakenError
	if !errors.As(err, &portTaken) || portTaken.Address != o.Listen {
		t.Fatalf("got %v, want a PortTakenError for %s", err, o.Listen)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store was made although the server could not start: %v", err)
	}
}

func TestPortIsFreeAfterShutdown(t *testing.T) {
	dir := t.TempDir()
	address := natstest.FreeAddress(t)
	first := natstest.Start(t, natstest.StoreDir(dir), natstest.Listen(address))
	first.Shutdown()

	o := embedded.NewOptions(dir)
	o.Listen = address
	second, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Shutdown()
	if second.URL() != first.URL() {
		t.Errorf("the second server is at %s, want %s", second.URL(), first.URL())
	}
}

func TestUnusableStoreIsRefused(t *testing.T) {
	inTheWay := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly := t.TempDir()
	if err := os.Chmod(readOnly, 0o500); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"a file": inTheWay, "under a file": filepath.Join(inTheWay, "store")}
	if os.Geteuid() != 0 { // Root may write everywhere.
		dirs["read only"] = readOnly
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			_, err := embedded.Start(onFreePort(dir))
			var unusable *embedded.StoreUnusableError
			if !errors.As(err, &unusable) {
				t.Fatalf("got %v, want a StoreUnusableError", err)
			}
		})
	}
}

func TestReasonOfTheServerIsReported(t *testing.T) {
	dir := t.TempDir()
	// nats-server wants a directory of this name.
	if err := os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(onFreePort(dir))
	var failed *embedded.StartError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want a StartError", err)
	}
	if !strings.Contains(failed.Reason, "directory") {
		t.Errorf("reason is %q, want the server's own words", failed.Reason)
	}
	if err := os.Remove(filepath.Join(dir, "jetstream")); err != nil {
		t.Fatal(err)
	}
	natstest.Start(t, natstest.StoreDir(dir)) // The store is free again.
}

func TestStart_TimeoutUnlocksTheStore(t *testing.T) {
	dir := t.TempDir()
	o := onFreePort(dir)
	o.StartTimeout = time.Nanosecond
	s, err := embedded.Start(o)
	for err == nil { // it was ready before anybody looked at the clock
		s.Shutdown()
		s, err = embedded.Start(o)
	}
	var late *embedded.StartTimeoutError
	if !errors.As(err, &late) {
		t.Fatalf("got %v, want a StartTimeoutError", err)
	}
	o.StartTimeout = 0
	for deadline := time.Now().Add(time.Minute); ; {
		s, err := embedded.Start(o)
		if err == nil {
			s.Shutdown()
			return
		}
		var inUse *embedded.StoreInUseError
		if !errors.As(err, &inUse) || time.Now().After(deadline) {
			t.Fatalf("the store did not become free: %v", err)
		}
		time.Sleep(5 * time.Millisecond) // Only the lock itself tells when it is free.
	}
}

func TestShutdownFromManyGoroutines(t *testing.T) {
	s := natstest.Start(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(s.Shutdown)
	}
	all.Wait()
	if _, err := nats.Connect(s.URL()); err == nil {
		t.Error("connected to a server that was shut down")
	}
}

func TestLogGoesToTheLogger(t *testing.T) {
	var out bytes.Buffer
	o := onFreePort(t.TempDir())
	o.SyncAlways = false
	o.Logger = zerolog.New(&out).Level(zerolog.DebugLevel)
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	for _, want := range []string{`"component":"nats-server"`, `"level":"debug"`, "Server is ready", `"level":"warn"`, "sync is off"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, out.String())
		}
	}
}

// publishOne makes a stream and stores one message in it.
func publishOne(t *testing.T, nc *nats.Conn, text string) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "kept", []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// readOne reads the message that publishOne stored.
func readOne(t *testing.T, nc *nats.Conn) string {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := js.Stream(ctx, "KEPT")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := stream.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	return string(msg.Data)
}
