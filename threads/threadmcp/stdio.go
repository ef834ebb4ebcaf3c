package threadmcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine bounds a message on a stream. A longer one is refused, and skipped.
const maxLine = 16 << 20

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
	n, err := a.out.Write(p)
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
		line, whole, err := readLine(r)
		m, refusal := messageOf(line, whole)
		switch {
		case refusal != nil:
			if err := refuse(w, line, refusal); err != nil {
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

// readLine returns the next line without its end, or, of one that is too long, its beginning.
func readLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := r.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= maxLine; whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), whole, err
		}
	}
}

// messageOf returns the message that a line is, nil if it is empty, or why it is none.
func messageOf(line []byte, whole bool) (jsonrpc.Message, *jsonrpc.Error) {
	switch {
	case !whole:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the message has more than %d bytes; send less in one", maxLine)}
	case len(line) == 0:
		return nil, nil
	case !json.Valid(line):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is not JSON; send each message as one line"}
	case line[0] == '[':
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a batch of messages is not supported; send each as one line"}
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the line is no JSON-RPC 2.0 message"}
	}
	return m, nil
}

// refuse answers a line that is no message, with its id if it has one.
func refuse(to io.Writer, line []byte, why *jsonrpc.Error) error {
	var of struct {
		ID any `json:"id"`
	}
	_ = json.Unmarshal(line, &of) // it may be anything
	switch of.ID.(type) {
	case string, float64:
	default:
		of.ID = nil
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": of.ID, "error": why})
	if err != nil {
		return err
	}
	_, err = to.Write(append(raw, '\n'))
	return err
}
