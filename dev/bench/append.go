package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/dev/bench/peer"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// Options configures a measurement.
type Options struct {
	Seconds     float64       // a case; default 4
	Threads     int           // that the clients write; default 1,000
	Clients     []int         // of the case "skein"; default 1, 64, 256
	Every       time.Duration // from one commit of a client to its next in the case "skein", of the peers and of a plain publish; default 0: as fast as they are acknowledged
	Alongside   time.Duration // another client commits to other threads meanwhile, this long from one commit to its next; default 0: none does
	Commits     int           // of each thread in a case "skein", instead of a time, so that runs compare; default 0: the time
	Skein       bool          // measure the case "skein" without the other ways to write to the server
	Peers       []string      // databases to measure, too, of Peers
	Dir         string        // where the store is made; default the system's temporary folder
	Store       string        // the store, which stays there with what is in it; default one in Dir that is removed
	ThreadCache int64         // bytes of thread states that Skein keeps in memory; default 0: its own default
	Interval    float64       // seconds of a case "skein" for which figures of their own are kept; default 0: none
	Profile     string        // file for a processor profile of the last case "skein", with catching up, or with .1, .2, ... for each interval of it; default none
	LoadArgs    []string      // makes this program run RunLoad
	Log         func(string)  // told what is being measured; may be nil
}

func (o Options) withDefaults() Options {
	if o.Seconds == 0 {
		o.Seconds = 4
	}
	if o.Threads == 0 {
		o.Threads = 1000
	}
	if len(o.Clients) == 0 {
		o.Clients = []int{1, 64, 256}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

// Append measures the ways to write commits, on one store in one process.
func Append(ctx context.Context, o Options) (*Result, error) {
	o = o.withDefaults()
	b, strike, err := stage(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	defer strike()
	if !o.Skein {
		if err := b.direct(ctx); err != nil {
			return nil, err
		}
	}
	p, stop, err := b.startPeers(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.skein(ctx, p), stop()); err != nil {
		return nil, err
	}
	b.result.compare()
	return &b.result, nil
}

type bench struct {
	o      Options
	dir    string
	url    string // of NATS
	http   string // the same of HTTP
	nc     *nats.Conn
	log    *eventlog.Log
	result Result
}

func (b *bench) duration() time.Duration { return time.Duration(b.o.Seconds * float64(time.Second)) }

func (b *bench) every() peer.Every { return peer.Every(b.o.Every.Milliseconds()) }

// direct measures the cases without Skein.
func (b *bench) direct(ctx context.Context) error {
	ready, err := readyMade()
	if err != nil {
		return err
	}
	b.result.EventBytes = float64(len(ready.Body)) / eventsPerCommit
	for _, name := range []string{"ONE", "BATCH", "PLAIN"} {
		if err := scratchStream(ctx, b.nc, name); err != nil {
			return err
		}
	}
	b.o.Log("one-by-one: a publish an event")
	one, err := oneByOne(b.nc, ready, b.duration())
	if err != nil {
		return fmt.Errorf("one-by-one: %w", err)
	}
	if err := b.clear(ctx, "ONE"); err != nil {
		return err
	}
	b.o.Log("batch: an atomic batch a commit")
	batch, err := oneBatch(b.nc, ready, b.duration())
	if err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	if err := b.clear(ctx, "BATCH"); err != nil {
		return err
	}
	b.o.Log("ceiling: ready-made commits of 256 writers, group-committed")
	most, err := ceiling(ctx, b.nc, 256, max(b.o.Threads, 256), b.duration())
	if err != nil {
		return fmt.Errorf("ceiling: %w", err)
	}
	if err := b.clear(ctx, "CEILING_LOG"); err != nil {
		return err
	}
	b.result.Cases = append(b.result.Cases, one, batch, most)
	b.o.Log("one plain publish of a commit's bytes")
	plain, err := Load{URL: b.url, Plain: true, Millis: b.duration().Milliseconds() / 2, Every: b.every()}.start(ctx, b.o.LoadArgs)
	if err != nil {
		return fmt.Errorf("plain: %w", err)
	}
	b.result.PlainP50Ms = measured("plain", 1, plain.durations(), time.Duration(plain.Elapsed)).P50Ms
	return b.clear(ctx, "PLAIN")
}

// clear removes the stream of a case that is done.
func (b *bench) clear(ctx context.Context, stream string) error {
	if err := b.log.JetStream().DeleteStream(ctx, stream); err != nil {
		return fmt.Errorf("clearing away: %w", err)
	}
	settle()
	return nil
}

// skein measures thread.commit over NATS, from another process, and the peers in turns with it.
func (b *bench) skein(ctx context.Context, p *peers) error {
	threads, err := b.create(ctx, b.o.Threads)
	if err != nil {
		return err
	}
	var alongside []string // the threads of the other client
	if b.o.Alongside > 0 {
		if alongside, err = b.create(ctx, len(threads)); err != nil {
			return err
		}
	}
	if err := b.caughtUp(ctx); err != nil {
		return err
	}
	for i, clients := range b.o.Clients {
		b.o.Log(fmt.Sprintf("skein: thread.commit, %d clients", clients))
		settle()
		last := i == len(b.o.Clients)-1
		stop, err := b.profile(last)
		if err != nil {
			return err
		}
		watched, err := b.watch(ctx, last && b.o.Profile != "")
		if err != nil {
			return errors.Join(err, stop())
		}
		before, begun := b.sizes(), processor()
		got, err := b.load(ctx, clients, threads, alongside)
		parts, unseen := watched()
		if err = errors.Join(err, unseen); err != nil {
			return fmt.Errorf("skein, %d clients: %w", clients, errors.Join(err, stop()))
		}
		c := measured("skein", clients, got.durations(), time.Duration(got.Elapsed))
		c.Intervals = parts
		c.Refused, c.ClientMicros = got.Refused, float64(got.Processor)/1000/float64(max(c.Commits, 1))
		acked := processor()
		if got.Refused > 0 {
			b.o.Log(fmt.Sprintf("%d commits were refused, the first: %s", got.Refused, got.Error))
		}
		if err := errors.Join(b.behind(ctx, &c), stop()); err != nil {
			return err
		}
		if len(alongside) == 0 { // otherwise the other client has a part in them
			c.spent(acked-begun, processor()-begun)
			after := b.sizes()
			written := float64(max(c.Commits, 1) * eventsPerCommit)
			c.LogBytesEvent, c.DerivedBytesEvent = float64(after.log-before.log)/written, float64(after.derived-before.derived)/written
		}
		b.result.Cases = append(b.result.Cases, c)
		if err := b.measurePeers(ctx, p, clients, threads); err != nil {
			return err
		}
	}
	return nil
}

// load runs the clients, and the one alongside them, if there are threads for it.
func (b *bench) load(ctx context.Context, clients int, threads, alongside []string) (*Loaded, error) {
	work := Load{URL: b.url, Clients: clients, Threads: threads, Millis: b.duration().Milliseconds(), Every: b.every(), Commits: b.o.Commits}
	other := make(chan error, 1)
	if len(alongside) == 0 {
		other <- nil
	} else {
		go func() {
			w := work
			w.Clients, w.Threads, w.Every, w.Commits = 1, alongside, peer.Every(b.o.Alongside.Milliseconds()), 0
			_, err := w.start(ctx, b.o.LoadArgs)
			other <- err
		}()
	}
	got, err := work.start(ctx, b.o.LoadArgs)
	return got, errors.Join(err, <-other)
}

// create makes threads, many at once.
func (b *bench) create(ctx context.Context, n int) ([]string, error) {
	return b.createBy(ctx, n, "thread.create", `{}`)
}

// createBy makes threads, many at once, each by a command with some data.
func (b *bench) createBy(ctx context.Context, n int, command, data string) ([]string, error) {
	threads := make([]string, n)
	slots := make(chan struct{}, 256)
	failed := make(chan error, 1)
	subject := events.DefaultNames().Command(tenant, command)
	for i := range threads {
		slots <- struct{}{}
		threads[i] = "T-" + uuid.Must(uuid.NewV7()).String()
		go func() {
			defer func() { <-slots }()
			reply, err := b.nc.Request(subject, fmt.Appendf(nil, `{"threadId":%q,"data":%s}`, threads[i], data), 30*time.Second)
			if err == nil && reply.Header.Get(events.HeaderErrorCode) != "" {
				err = errors.New(string(reply.Data))
			}
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		}()
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	select {
	case err := <-failed:
		return nil, fmt.Errorf("creating threads: %w", err)
	default:
		return threads, ctx.Err()
	}
}

// behind measures how far timeline and read models lag now, and how long they take to
// catch up.
func (b *bench) behind(ctx context.Context, c *Case) error {
	last, err := b.log.LastSeq(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	shown, err := timeline.Of(b.log).LastSeq(ctx)
	if err != nil {
		return err
	}
	c.TimelineLag = last - min(shown, last)
	c.ProjectionLag = last - min(b.progress(), last)
	if err := b.caughtUp(ctx); err != nil {
		return err
	}
	c.CatchUpSeconds = time.Since(start).Seconds()
	return nil
}

// caughtUp waits until timeline and read models show all of the log. It gives up when neither has
// come closer for two minutes.
func (b *bench) caughtUp(ctx context.Context) error {
	last, err := b.log.LastSeq(ctx)
	if err != nil {
		return err
	}
	seen, moved := uint64(0), time.Now()
	for time.Since(moved) < 2*time.Minute && ctx.Err() == nil {
		shown, err := timeline.Of(b.log).LastSeq(ctx)
		if err != nil {
			return err
		}
		if shown >= last && b.shown(last) {
			return nil
		}
		if now := shown + b.progress(); now != seen {
			seen, moved = now, time.Now()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.New("timeline and read models have not caught up, and do not come closer")
}

// shown reports whether the read models show the log up to a sequence: a query waits
// for that.
func (b *bench) shown(seq uint64) bool {
	body := fmt.Appendf(nil, `{"minSeq":%d,"limit":1}`, seq)
	reply, err := b.nc.Request(events.DefaultNames().Query(tenant, "thread.list"), body, 10*time.Second)
	return err == nil && reply.Header.Get(events.HeaderErrorCode) == ""
}

// progress reads the checkpoint of the read models.
func (b *bench) progress() uint64 {
	kv, err := b.log.JetStream().KeyValue(context.Background(), "thread_threads")
	if err != nil {
		return 0
	}
	entry, err := kv.Get(context.Background(), "_.checkpoint")
	if err != nil {
		return 0
	}
	var at struct {
		Seq uint64 `json:"seq"`
	}
	if json.Unmarshal(entry.Value(), &at) != nil {
		return 0
	}
	return at.Seq
}

// sizes are the bytes on disk of the log and of what is derived.
type sizes struct{ log, derived int64 }

func (b *bench) sizes() sizes {
	var s sizes
	root := filepath.Join(b.dir, "jetstream", "$G", "streams")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file may go while it is looked at
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		switch stream, _, _ := strings.Cut(filepath.ToSlash(rel), "/"); stream {
		case "SKEIN_LOG":
			s.log += info.Size()
		case "ONE", "BATCH", "PLAIN", "CEILING_LOG":
		default:
			s.derived += info.Size()
		}
		return nil
	})
	return s
}
