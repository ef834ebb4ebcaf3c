package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/dev/bench/peer"
	"github.com/skein-threads/skein/dev/bench/traffic"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/loopback"
)

// Load is the work of the client process.
type Load struct {
	URL     string     `json:"url"`
	Clients int        `json:"clients"`
	Threads []string   `json:"threads"`
	Millis  int64      `json:"millis"`
	Every   peer.Every `json:"every,omitzero"`
	Plain   bool       `json:"plain,omitzero"`   // one plain publish after another, to the stream PLAIN
	React   bool       `json:"react,omitzero"`   // turns of an agent, each on the next thread
	Commits int        `json:"commits,omitzero"` // so many on each thread, instead of a time

	Creds    string          `json:"creds,omitzero"` // file of credentials, if the server wants any
	Inbox    string          `json:"inbox,omitzero"` // prefix of inboxes, with them
	Tenant   string          `json:"tenant,omitzero"`
	Commands bool            `json:"commands,omitzero"` // one thread.create after another, of Tenant
	Flood    *loopback.Flood `json:"flood,omitzero"`    // instead of all that, until it is interrupted

	Traffic *traffic.Work  `json:"traffic,omitzero"` // instead of all that
	Abuse   *traffic.Abuse `json:"abuse,omitzero"`   // instead of all that, until it is interrupted
	Heavy   *traffic.Heavy `json:"heavy,omitzero"`   // instead of all that, until it is interrupted

	Postgres *peer.PostgresWork `json:"postgres,omitzero"` // instead of all that
}

// Loaded is the client process's result.
type Loaded struct {
	Nanos      []int64 `json:"nanos"`                // of each commit, or turn
	ChunkNanos []int64 `json:"chunkNanos,omitempty"` // of each chunk, from when it was emitted; of Traffic, until the first part of an answer
	Elapsed    int64   `json:"elapsed"`
	Processor  int64   `json:"processor,omitzero"` // nanoseconds that the clients used of it
	WarmUps    int     `json:"warmUps,omitzero"`   // of Traffic: operations that Nanos does not have
	Refused    int     `json:"refused"`
	Error      string  `json:"error,omitzero"` // the first refusal
	Sent       int64   `json:"sent,omitzero"`  // of a flood: messages that were written
	Ended      int64   `json:"ended,omitzero"` // of a flood: connections that the server ended
}

// RunLoad is the process of the clients: it reads a Load and writes a Loaded,
// as JSON, on its standard input and output.
func RunLoad(ctx context.Context) error {
	var l Load
	if err := json.UnmarshalRead(os.Stdin, &l); err != nil {
		return fmt.Errorf("reading what to do: %w", err)
	}
	out, err := l.run(ctx)
	if err != nil {
		return err
	}
	return json.MarshalWrite(os.Stdout, out)
}

// part starts this program with other arguments, as another process of a
// measurement.
func part(ctx context.Context, args []string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, nil, err
	}
	return cmd, in, out, cmd.Start()
}

// start runs the load in a process of its own: this program, with the given
// arguments.
func (l Load) start(ctx context.Context, args []string) (*Loaded, error) {
	in, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	cmd, stdin, stdout, err := part(ctx, args)
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = stdin.Write(in)
		_ = stdin.Close()
	}()
	var out Loaded
	readErr := json.UnmarshalRead(stdout, &out)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("the process of the clients: %w", err)
	}
	if readErr != nil {
		return nil, fmt.Errorf("what the clients saw: %w", readErr)
	}
	return &out, nil
}

func (l Load) run(ctx context.Context) (*Loaded, error) {
	if l.Flood != nil || l.Abuse != nil {
		return l.flood(ctx)
	}
	if l.Postgres != nil {
		return l.postgres(ctx)
	}
	opts, err := connect.Options{Creds: l.Creds, Inbox: l.Inbox}.NATS("skein-bench")
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(l.URL, opts...)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if l.Heavy != nil {
		return l.heavy(ctx, nc)
	}
	if l.Traffic != nil {
		t, err := l.Traffic.Run(ctx, nc)
		if err != nil {
			return nil, err
		}
		return &Loaded{Nanos: t.Whole, ChunkNanos: t.First, Elapsed: t.Elapsed, WarmUps: t.WarmUps, Refused: t.Refused, Error: t.Error}, nil
	}
	if l.Commands {
		return l.commands(ctx, nc), nil
	}
	if l.Plain {
		return l.plain(ctx, nc)
	}
	if l.React {
		return l.react(ctx, nc)
	}
	var refused atomic.Int64
	var first atomic.Pointer[string]
	took := make([][]int64, l.Clients)
	requests := newRequests()
	run := uuid.Must(uuid.NewV7()).String()
	subject := events.DefaultNames().Command(tenant, "thread.commit")
	var working sync.WaitGroup
	start, begun := time.Now(), processor()
	for w := range l.Clients {
		working.Go(func() {
			var mine []string
			for i := w; i < len(l.Threads); i += l.Clients {
				mine = append(mine, l.Threads[i])
			}
			for i := 0; len(mine) > 0 && ctx.Err() == nil; i++ {
				if l.Commits > 0 && i >= l.Commits*len(mine) || l.Commits == 0 && time.Since(start).Milliseconds() >= l.Millis {
					return
				}
				body := requests.make(mine[i%len(mine)], fmt.Sprintf("%s-%x-%x", run[:23], w, i))
				begun := time.Now()
				reply, err := nc.Request(subject, body, 30*time.Second)
				text := ""
				if err != nil {
					text = err.Error()
				} else if reply.Header.Get(events.HeaderErrorCode) != "" {
					text = string(reply.Data)
				}
				if text != "" {
					refused.Add(1)
					first.CompareAndSwap(nil, &text)
					continue
				}
				took[w] = append(took[w], time.Since(begun).Nanoseconds())
				l.Every.Wait(ctx, begun)
			}
		})
	}
	working.Wait()
	out := &Loaded{Elapsed: time.Since(start).Nanoseconds(), Processor: (processor() - begun).Nanoseconds(), Refused: int(refused.Load())}
	if text := first.Load(); text != nil {
		out.Error = *text
	}
	for _, t := range took {
		out.Nanos = append(out.Nanos, t...)
	}
	return out, nil
}

// plain publishes a commit's bytes, one after another.
func (l Load) plain(ctx context.Context, nc *nats.Conn) (*Loaded, error) {
	c, err := readyMade()
	if err != nil {
		return nil, err
	}
	out := &Loaded{}
	start := time.Now()
	for i := 0; time.Since(start).Milliseconds() < l.Millis; i++ {
		begun := time.Now()
		if err := acked(nc.Request(fmt.Sprintf("PLAIN.%d", i%1000), c.Body, 5*time.Second)); err != nil {
			return nil, err
		}
		out.Nanos = append(out.Nanos, time.Since(begun).Nanoseconds())
		l.Every.Wait(ctx, begun)
	}
	out.Elapsed = time.Since(start).Nanoseconds()
	return out, nil
}

// durations returns the duration of each commit.
func (l *Loaded) durations() []time.Duration {
	out := make([]time.Duration, len(l.Nanos))
	for i, n := range l.Nanos {
		out[i] = time.Duration(n)
	}
	return out
}
