package streams

import (
	"context"
	"time"
)

// What tests of this package see.
const (
	CodeWrongLastSequence  = codeWrongLastSequence
	CodeWrongLastID        = codeWrongLastID
	CodeWrongLastInFlight  = codeWrongLastInFlight
	CodeBatchIncomplete    = codeBatchIncomplete
	CodeBatchTooLarge      = codeBatchTooLarge
	CodeBatchDuplicate     = codeBatchDuplicate
	CodeBatchTooManyOpen   = codeBatchTooManyOpen
	CodeMessageTooLarge    = codeMessageTooLarge
	CodeStreamStoreFailed  = codeStreamStoreFailed
	CodeInsufficient       = codeInsufficient
	CodeTooManyWaiting     = codeTooManyWaiting
	CodeStreamOffline      = codeStreamOffline
	CodeClusterUnavailable = codeClusterUnavailable
	CodeNoPeers            = codeNoPeers
	CodeNotLeader          = codeNotLeader
	CodeNoJetStream        = codeNoJetStream

	HeaderBatchID       = headerBatchID
	HeaderBatchSequence = headerBatchSequence
	HeaderBatchCommit   = headerBatchCommit

	SilentTries = silentTries
	RottenShare = rottenShare
	ListRequest = listRequest
	ListQuiet   = listQuiet
)

// WithReplicas returns a Conn that is connected to nothing.
func WithReplicas(n int) *Conn { return &Conn{cfg: Config{Replicas: n}} }

func (c *Conn) SetAckTimeout(d time.Duration)                       { c.cfg.AckTimeout = d }
func (c *Conn) SetPatience(d time.Duration)                         { c.cfg.Patience = d }
func (c *Conn) SetReadTimeout(d time.Duration)                      { c.readTimeout = d }
func (c *Conn) SetRottenFor(d time.Duration)                        { c.rottenFor = d }
func (c *Conn) SetScanWorth(n uint64)                               { c.scanWorth = n }
func (c *Conn) SetDamage(damage func(string, uint64, uint64) error) { c.cfg.Damage = damage }

// OpenRequests returns how many requests wait for answers.
func (c *Conn) OpenRequests() int {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	return len(c.inbox.open)
}

// UntilAnswered is what every direct read goes through.
func (c *Conn) UntilAnswered(ctx context.Context, stream string, seq uint64, read func(within time.Duration) error) error {
	return c.untilAnswered(ctx, stream, GetRequest{Seq: seq}, read)
}

// Found returns the error of a read of which the server found a message that it could not read.
func Found(stream string, seq uint64) error {
	return &IncompleteError{Stream: stream, Seq: seq, found: true}
}
