package files_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

// world is a server with everything that files need, but without a runner.
type world struct {
	t       testing.TB
	server  *embedded.Server
	log     *eventlog.Log
	store   *files.Store
	writes  *commands.Dispatcher
	service *files.Service

	images, searches *quota.Pool
}

func newWorld(t testing.TB, cfg files.ServiceConfig) *world {
	t.Helper()
	w := &world{t: t, server: natstest.Start(t)}
	w.images, w.searches = quota.NewPool("images", quota.Places{Total: 1}, nil), quota.NewPool("searches", quota.Places{Total: 4}, nil)
	log, err := eventlog.Open(natstest.Connect(t, w.server), eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	w.log = log
	if err := log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.store, err = files.Open(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	w.writes = commands.NewDispatcher(log, validator, commands.Config{Contents: w.store}, zerolog.Nop(), nil)
	queries := query.New(log, validator, query.Config{Wait: time.Minute, Contents: files.NewViewer(w.store, w.images, w.searches)}, zerolog.Nop(), nil)
	if w.service, err = files.Serve(log, w.store, w.writes, queries, cfg, zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.service.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	commandService, err := service.Serve(log.Conn(), log.Config().Names, service.Endpoint{Name: "c", Kind: "cmd", Version: "0.0.0", InFlight: 64}, w.writes.Handle, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = commandService.Stop(context.Background()) })
	return w
}

func (w *world) client(tenant string) *client.Client {
	w.t.Helper()
	c, err := client.New(natstest.Connect(w.t, w.server), client.Options{Tenant: tenant, Timeout: time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// thread creates a thread and returns its id.
func (w *world) thread(c *client.Client) string {
	w.t.Helper()
	made, err := c.Send(w.t.Context(), "", events.CreateThread{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.ThreadID
}

// held returns how many messages the store has.
func (w *world) held() uint64 {
	w.t.Helper()
	n, err := w.store.Held(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// until waits until something is so.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s is not so after a minute", what)
		}
	}
}

// content returns what the store has under a tenant's digest.
func (w *world) content(tenant, digest string) ([]byte, error) {
	var all bytes.Buffer
	for piece, err := range w.store.All(w.t.Context(), tenant, digest) {
		if err != nil {
			return nil, err
		}
		all.Write(piece)
	}
	return all.Bytes(), nil
}

func noise(n int, seed byte) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// raw starts an upload by hand, and returns its subject.
func (w *world) raw(nc *nats.Conn, tenant, thread, path string) string {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"threadId": thread, "data": map[string]any{"path": path}})
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := nc.Request("skein.file."+tenant+".content.put", body, time.Minute)
	if err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
		w.t.Fatalf("%v %s", err, m.Data)
	}
	var b struct {
		Subject string `json:"subject"`
	}
	if err := json.Unmarshal(m.Data, &b); err != nil {
		w.t.Fatal(err)
	}
	return b.Subject
}

// piece sends a piece by hand.
func piece(t testing.TB, nc *nats.Conn, subject, n, kind string, data []byte) *nats.Msg {
	t.Helper()
	m := nats.NewMsg(subject)
	m.Header.Set(events.HeaderPiece, n)
	if kind != "" {
		m.Header.Set(events.HeaderUpload, kind)
	}
	m.Data = data
	answer, err := nc.RequestMsg(m, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
