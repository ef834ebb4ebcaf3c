// Package rpcline reads messages of JSON-RPC 2.0 from a stream, one a line, and says of a line that is
// no message why.
package rpcline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// MaxBytes bounds a message. A longer one is refused, and skipped.
const MaxBytes = 16 << 20

// Read returns the next line without its end, or, of one that is too long, its beginning. The error is
// that of r, which may come with the last line.
func Read(r *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := r.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= MaxBytes; whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), whole, err
		}
	}
}

// Decode returns the message that a line is, nil if it is empty, or why it is none.
func Decode(line []byte, whole bool) (jsonrpc.Message, *jsonrpc.Error) {
	switch {
	case !whole:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the message has more than %d bytes; send less in one", MaxBytes)}
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

// Refusal returns the answer to a line that is no message, with its id if it has one, and with its end.
func Refusal(line []byte, why *jsonrpc.Error) ([]byte, error) {
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
	return append(raw, '\n'), err
}
