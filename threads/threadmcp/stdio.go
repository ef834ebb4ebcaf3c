package threadmcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/internal/rpcline"
)

// endTime is how long answers in flight may take to be written when ctx has ended.
const endTime = 2 * time.Second

// ServeStream serves one session of newline-delimited messages, until in or ctx ends, neither of
// which is an error. Requests that came before the end of in are answered. It does not close in
// and out.
func (s *Server) ServeStream(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &answers{out: out, waiting: map[jsonrpc.ID]int{}, none: make(chan struct{}, 1)}
	pass, received := io.Pipe()
	go func() {
		err := forward(in, received, w)
		w.wait(callTime) // the end of the input would end the session
		_ = received.CloseWithError(err)
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- s.mcp.Run(ctx, &mcp.IOTransport{Reader: pass, Writer: w, MaxLineLength: -1})
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(endTime): // nobody reads
		}
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// answers writes messages, each whole, and knows which requests have no answer yet. Closing it
// does nothing.
type answers struct {
	writing sync.Mutex // held while out is written
	out     io.Writer

	mu      sync.Mutex         // guards waiting
	waiting map[jsonrpc.ID]int // requests without an answer
	none    chan struct{}      // receives when there may be none
}

func (a *answers) Write(p []byte) (int, error) {
	a.writing.Lock()
	n := len(p)
	_, err := a.out.Write(withoutTypes(p))
	a.writing.Unlock()
	if m, bad := jsonrpc.DecodeMessage(bytes.TrimSpace(p)); bad == nil {
		if r, ok := m.(*jsonrpc.Response); ok {
			a.note(r.ID, -1)
		}
	}
	return n, err
}

func (a *answers) Close() error { return nil }

// note notes a request, or an answer.
func (a *answers) note(id jsonrpc.ID, change int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[id] += change; a.waiting[id] <= 0 {
		delete(a.waiting, id)
	}
	if len(a.waiting) == 0 {
		select {
		case a.none <- struct{}{}:
		default:
		}
	}
}

// wait blocks until every request is answered, or for as long as that may take.
func (a *answers) wait(most time.Duration) {
	late := time.After(most)
	for {
		a.mu.Lock()
		n := len(a.waiting)
		a.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-a.none:
		case <-late:
			return
		}
	}
}

// forward passes on the lines that are messages. The session would end with the first that is
// not: that one is answered here. The error is io.EOF at the end of in.
func forward(in io.Reader, to io.Writer, w *answers) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, whole, err := rpcline.Read(r)
		m, refusal := rpcline.Decode(line, whole)
		switch {
		case refusal != nil:
			raw, err := rpcline.Refusal(line, refusal)
			if err != nil {
				return err
			}
			if _, err := w.Write(raw); err != nil {
				return err
			}
		case m != nil:
			if request, ok := m.(*jsonrpc.Request); ok && request.IsCall() {
				w.note(request.ID, 1)
			}
			if _, err := to.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}
