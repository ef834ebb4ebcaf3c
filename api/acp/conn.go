package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/skein-threads/skein/events"
)

// Codes of errors that only this protocol has.
const (
	codeRequestCancelled = -32800
	codeNotFound         = -32002
)

// conn writes messages, and knows which requests of its own have no answer yet.
type conn struct {
	writing sync.Mutex // held while out is written
	out     io.Writer

	mu      sync.Mutex // guards what follows
	last    float64    // the id of the last request
	waiting map[jsonrpc.ID]chan *jsonrpc.Response
}

// write writes one message.
func (c *conn) write(m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.writeLine(append(raw, '\n'))
}

func (c *conn) writeLine(line []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(line)
	return err
}

// notify tells the client something.
func (c *conn) notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.write(&jsonrpc.Request{Method: method, Params: raw})
}

// call asks the client something, and decodes the answer. When ctx ends, the client is told that it need
// not answer.
func (c *conn) call(ctx context.Context, method string, params, into any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan *jsonrpc.Response, 1)
	c.mu.Lock()
	c.last++
	number := c.last
	id, err := jsonrpc.MakeID(number)
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err != nil {
		return err
	}
	if err := c.write(&jsonrpc.Request{ID: id, Method: method, Params: raw}); err != nil {
		return err
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return r.Error
		}
		return json.Unmarshal(r.Result, into)
	case <-ctx.Done():
		_ = c.notify("$/cancel_request", map[string]float64{"requestId": number}) // a client that is gone needs none
		return context.Cause(ctx)
	}
}

// answered passes the answer to a request of this side on. One that nobody waits for is dropped.
func (c *conn) answered(r *jsonrpc.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.waiting[r.ID]; answer != nil {
		delete(c.waiting, r.ID)
		answer <- r
	}
}

// reply answers a request of the client.
func (c *conn) reply(id jsonrpc.ID, result any, err error) error {
	if err != nil {
		return c.write(&jsonrpc.Response{ID: id, Error: errorOf(err)})
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return c.write(&jsonrpc.Response{ID: id, Error: errorOf(err)})
	}
	return c.write(&jsonrpc.Response{ID: id, Result: raw})
}

// errorOf returns an error as one of the protocol, whose data has what Skein says of it.
func errorOf(err error) *jsonrpc.Error {
	var own *jsonrpc.Error
	if errors.As(err, &own) {
		return own
	}
	if errors.Is(err, context.Canceled) {
		return &jsonrpc.Error{Code: codeRequestCancelled, Message: "the request was cancelled"}
	}
	e := events.AsError(err)
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Message}
	switch e.Code {
	case events.InvalidRequest, events.PayloadTooLarge:
		out.Code = jsonrpc.CodeInvalidParams
	case events.NotFound:
		out.Code = codeNotFound
	}
	if data, err := json.Marshal(e); err == nil {
		out.Data = data
	}
	return out
}
