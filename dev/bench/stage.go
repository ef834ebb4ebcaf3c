package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// stage starts a Skein on a store of its own, or on the one in o, with what register adds to it,
// which may be nil. strike takes it all away, but for the store in o.
func stage(ctx context.Context, o Options, register func(*runtime.Registry) error) (b *bench, strike func(), err error) {
	if o.Store != "" {
		return stageIn(ctx, o.Store, o, register)
	}
	dir, err := os.MkdirTemp(o.Dir, "skein-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("a folder for the store: %w", err)
	}
	b, stop, err := stageIn(ctx, dir, o, register)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, func() {
		stop()
		_ = os.RemoveAll(dir)
	}, nil
}

// stageIn starts a Skein on the store in a folder. stop ends it, and leaves the store.
func stageIn(ctx context.Context, dir string, o Options, register func(*runtime.Registry) error) (b *bench, stop func(), err error) {
	return stageAs(ctx, server.Config{Store: dir, Register: register, ThreadCache: o.ThreadCache}, o)
}

// stageAs starts a Skein as configured, on free ports. stop ends it, and leaves the store.
func stageAs(ctx context.Context, as server.Config, o Options) (b *bench, stop func(), err error) {
	var undo []func()
	stop = func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	as.NATSListen, as.HTTPListen = "127.0.0.1:0", "127.0.0.1:0"
	server, err := server.Start(ctx, as, zerolog.Nop())
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, func() {
		stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Stop(stop)
	})
	nc, err := nats.Connect(server.Addresses().NATS)
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, nc.Close)
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, log.Close)
	return &bench{o: o, dir: as.Store, url: server.Addresses().NATS, http: server.Addresses().HTTP, nc: nc, log: log}, stop, nil
}

// settle puts to disk what earlier cases left to be written, and collects their
// garbage, as go test does before a benchmark: no case pays for the one before it.
func settle() {
	flush()
	goruntime.GC()
}
