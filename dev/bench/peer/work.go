package peer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/skein-threads/skein/internal/retry"
)

// ErrMissing means that a peer is not installed.
var ErrMissing = errors.New("not installed")

// Row is an event or a document. Its key is used for documents only.
type Row struct {
	Kind string `json:"kind"` // type of the event, or read model of the document
	Key  string `json:"key,omitzero"`
	Body string `json:"body"`
}

// Turn is what is stored of one commit. Thread and Nonce are replaced in the keys of documents,
// so that each turn of each thread has documents of its own, but for those of the thread.
type Turn struct {
	Thread    string `json:"thread"`
	Nonce     string `json:"nonce"`
	Events    []Row  `json:"events"`
	Documents []Row  `json:"documents"`
}

// keys returns the keys of the documents of a turn of a thread.
func (t *Turn) keys(thread, nonce string) []string {
	replacer := strings.NewReplacer(t.Thread, thread, t.Nonce, nonce)
	out := make([]string, len(t.Documents))
	for i, d := range t.Documents {
		out[i] = replacer.Replace(d.Key)
	}
	return out
}

// Work is what the clients of a peer do: each writes turns to its share of the threads, one
// commit after another.
type Work struct {
	Turn    Turn     `json:"turn"`
	Clients int      `json:"clients"`
	Threads []string `json:"threads"`
	Millis  int64    `json:"millis"`
	Every   Every    `json:"every,omitzero"`
}

// Every is the time in milliseconds from the beginning of one commit of a client to that of the
// next, as of people who type; 0: the next begins when the last is done.
type Every int64

// Wait waits until the commit is due after one that began at a time, or until ctx ends.
func (e Every) Wait(ctx context.Context, begun time.Time) {
	retry.Sleep(ctx, time.Until(begun.Add(time.Duration(e)*time.Millisecond)))
}

// run calls write for turn after turn of each client until the time is over. It returns how long
// each took, and the first error.
func (w Work) run(ctx context.Context, write func(ctx context.Context, thread, nonce string, version int64) error) ([]int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]int64, w.Clients)
	var working sync.WaitGroup
	start := time.Now()
	for c := range w.Clients {
		working.Go(func() {
			var mine []string
			for i := c; i < len(w.Threads); i += w.Clients {
				mine = append(mine, w.Threads[i])
			}
			for i := 0; len(mine) > 0 && ctx.Err() == nil && time.Since(start).Milliseconds() < w.Millis; i++ {
				turn := int64(i / len(mine))
				begun := time.Now()
				if err := write(ctx, mine[i%len(mine)], nonce(c, i), 1+turn*int64(len(w.Turn.Events))); err != nil {
					cancel(err)
					return
				}
				took[c] = append(took[c], time.Since(begun).Nanoseconds())
				w.Every.Wait(ctx, begun)
			}
		})
	}
	working.Wait()
	var all []int64
	for _, t := range took {
		all = append(all, t...)
	}
	return all, context.Cause(ctx)
}
