package bench

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/dev/bench/traffic"
	"github.com/skein-threads/skein/events"
)

// begin starts the load in a process of its own. stop ends it, and returns its result.
func (l Load) begin(ctx context.Context, args []string) (stop func() (*Loaded, error), err error) {
	in, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	cmd, stdin, stdout, err := part(ctx, args)
	if err != nil {
		return nil, err
	}
	if _, err := stdin.Write(in); err != nil {
		return nil, err
	}
	if err := stdin.Close(); err != nil {
		return nil, err
	}
	return func() (*Loaded, error) {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return nil, err
		}
		var out Loaded
		readErr := json.UnmarshalRead(stdout, &out)
		if err := cmd.Wait(); err != nil {
			return nil, fmt.Errorf("the process of the flood: %w", err)
		}
		return &out, readErr
	}, nil
}

// flood floods until ctx ends or its time is over.
func (l Load) flood(ctx context.Context) (out *Loaded, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(l.Millis)*time.Millisecond)
	defer cancel()
	out = &Loaded{}
	if l.Abuse != nil {
		out.Sent, out.Ended, err = l.Abuse.Run(ctx)
		return out, err
	}
	out.Sent, out.Ended = l.Flood.Run(ctx)
	return out, nil
}

// prepare stores what its heavy requests read.
func (l *Load) prepare(ctx context.Context) error {
	opts, err := connect.Options{Creds: l.Creds, Inbox: l.Inbox}.NATS("skein-bench")
	if err != nil {
		return err
	}
	nc, err := nats.Connect(l.URL, opts...)
	if err != nil {
		return err
	}
	defer nc.Close()
	l.Heavy.Thread, err = traffic.Prepare(ctx, nc, l.Heavy.Tenant, l.Heavy.Kind)
	return err
}

// heavy sends heavy requests until ctx ends or its time is over.
func (l Load) heavy(ctx context.Context, nc *nats.Conn) (out *Loaded, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(l.Millis)*time.Millisecond)
	defer cancel()
	out = &Loaded{}
	out.Sent, err = l.Heavy.Run(ctx, nc)
	return out, err
}

// commands sends one command after another, from each client.
func (l Load) commands(ctx context.Context, nc *nats.Conn) *Loaded {
	var mu sync.Mutex
	out := &Loaded{}
	subject := events.DefaultNames().Command(l.Tenant, "thread.create")
	start := time.Now()
	var working sync.WaitGroup
	for range l.Clients {
		working.Go(func() {
			for ctx.Err() == nil && time.Since(start).Milliseconds() < l.Millis {
				begun := time.Now()
				reply, err := nc.Request(subject, []byte(`{"data":{"title":"an order"}}`), 30*time.Second)
				took := time.Since(begun).Nanoseconds()
				text := ""
				if err != nil {
					text = err.Error()
				} else if reply.Header.Get(events.HeaderErrorCode) != "" {
					text = string(reply.Data)
				}
				mu.Lock()
				out.Nanos = append(out.Nanos, took) // a refusal took its time, too
				if text != "" {
					out.Refused++
					out.Error = text
				}
				mu.Unlock()
			}
		})
	}
	working.Wait()
	out.Elapsed = time.Since(start).Nanoseconds()
	return out
}
