package client

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// begunUpload is the answer to content.put.
type begunUpload struct {
	Subject string `json:"subject"`
	Piece   int    `json:"pieceBytes"`
	Window  int    `json:"window"`
}

// pieceTimeout is how long the storing of a piece may take.
const pieceTimeout = 30 * time.Second

// upload writes a file whose content is read piece by piece.
func (f *Files) upload(ctx context.Context, w events.WriteFile, o WriteFileOptions, from io.Reader) (*events.FileRecord, error) {
	command, err := f.c.command(Request{ThreadID: f.thread, Data: w, CommandID: o.CommandID, Actor: o.Actor})
	if err != nil {
		return nil, err
	}
	begun, err := f.c.beginUpload(ctx, command)
	if err != nil {
		return nil, err
	}
	if begun.Piece < 1 || begun.Window < 1 {
		return nil, events.Errorf(events.Unavailable, "the answer to content.put is invalid: pieces of %d bytes, %d at a time", begun.Piece, begun.Window)
	}
	u := &uploadSession{c: f.c, begunUpload: *begun, inbox: f.c.nc.NewInbox()}
	if u.answers, err = f.c.subscribe(ctx, u.inbox+".*", nil); err != nil {
		return nil, events.Errorf(events.Unavailable, "the connection is closed: %w", err)
	}
	defer func() { _ = u.answers.Unsubscribe() }() // the connection may be closed
	alive := u.stayAlive(ctx)
	err = u.sendPieces(ctx, from)
	alive()
	if err != nil {
		u.abort(context.WithoutCancel(ctx))
		return nil, err
	}
	reply, err := u.endUpload(ctx, command.CommandID)
	if err != nil {
		return nil, err
	}
	return f.noteWrite(reply), nil
}

// beginUpload sends the command that writes the file, whose content follows.
func (c *Client) beginUpload(ctx context.Context, command *events.Request) (begun *begunUpload, err error) {
	r := c.serviceRequest(events.KindFile, "content.put")
	r.Command = command
	_, err = c.guardedCommand(ctx, c.subject(r), command, func() (*events.Reply, error) {
		answer, refusal := c.requestUntilFinal(ctx, r, natsService{c, true})
		if refusal != nil {
			return nil, refusal
		}
		begun, err = decode[begunUpload](answer.Body)
		return nil, err
	})
	if err != nil {
		return nil, events.AsError(err)
	}
	return begun, nil
}

// uploadSession is an upload in progress.
type uploadSession struct {
	c *Client
	begunUpload
	inbox   string
	answers *nats.Subscription
	sent    int64 // pieces
	open    int   // pieces without an answer
}

// aliveEvery is how often the service is told that the upload continues: a reader may
// be slow.
const aliveEvery = 10 * time.Second

// stayAlive tells the service that the upload continues, until stop is called.
func (u *uploadSession) stayAlive(ctx context.Context) (stop func()) {
	m := nats.NewMsg(u.Subject)
	m.Header.Set(events.HeaderUpload, events.UploadWait)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(aliveEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = u.c.publish(ctx, m) // if the connection is closed, the pieces fail
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// sendPieces sends the content, a few pieces ahead of their answers.
func (u *uploadSession) sendPieces(ctx context.Context, from io.Reader) error {
	piece := make([]byte, u.Piece)
	for {
		if err := ctx.Err(); err != nil {
			return abortedError(err)
		}
		n, err := io.ReadFull(from, piece)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err // the caller's own
		}
		if n > 0 {
			if u.open == u.Window {
				if err := u.awaitAnswer(ctx); err != nil {
					return err
				}
			}
			if err := u.send(ctx, "", piece[:n]); err != nil {
				return err
			}
			u.sent++
			u.open++
		}
		if err != nil {
			break
		}
	}
	for u.open > 0 {
		if err := u.awaitAnswer(ctx); err != nil {
			return err
		}
	}
	return nil
}

// send sends a message of the upload. The caller may reuse data.
func (u *uploadSession) send(ctx context.Context, kind string, data []byte) error {
	n := strconv.FormatInt(u.sent, 10)
	m := nats.NewMsg(u.Subject)
	m.Header.Set(events.HeaderPiece, n)
	if kind != "" {
		m.Header.Set(events.HeaderUpload, kind)
	}
	m.Data, m.Reply = data, u.inbox+"."+n
	if err := u.c.publish(ctx, m); err != nil {
		return abortedError(err)
	}
	return nil
}

// awaitAnswer waits for the answer to a piece.
func (u *uploadSession) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	m, err := u.answers.NextMsgWithContext(ctx)
	if err != nil {
		return abortedError(err)
	}
	if noResponders(m) {
		return events.Errorf(events.Unavailable, "the upload was aborted: no service receives it any more; nothing was written")
	}
	if refusal := refused(m); refusal != nil {
		return refusal
	}
	u.open--
	return nil
}

// noResponders reports whether an answer is the server's "no responders".
func noResponders(m *nats.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

// abortedError returns the error of an aborted upload.
func abortedError(err error) error {
	return events.Errorf(events.Unavailable, "the upload was aborted; nothing was written: %w", err)
}

// endUpload requests the command's execution, and retries if the answer is lost.
func (u *uploadSession) endUpload(ctx context.Context, id string) (*events.Reply, error) {
	ctx, cancel := u.c.limited(ctx)
	defer cancel()
	for attempts := requests().Start(); ; {
		repeated := attempts.Failures() > 0
		refusal := u.requestEnd(ctx)
		if refusal.reply != nil {
			return refusal.reply, nil
		}
		err := refusal.err
		if !err.Retry() || u.c.nc.IsClosed() || refusal.gone || attempts.Wait(ctx) != nil {
			if err.Retry() && (repeated || err.Details != nil && err.Details.Outcome == unknown) {
				err = unknownOutcome(err)
				err.Details.ID = id
			}
			return nil, err
		}
	}
}

// endAnswer is the outcome of one request to end the upload.
type endAnswer struct {
	reply *events.Reply
	err   *events.Error
	gone  bool
}

func (u *uploadSession) requestEnd(ctx context.Context) endAnswer {
	if err := u.send(ctx, events.UploadEnd, nil); err != nil {
		return endAnswer{err: events.AsError(err)}
	}
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	m, err := u.answers.NextMsgWithContext(ctx)
	switch {
	case err != nil:
		return endAnswer{err: unknownOutcome(events.Errorf(events.Unavailable, "no answer to the end of the upload: %w", err))}
	case noResponders(m):
		return endAnswer{err: events.Errorf(events.Unavailable, "no service receives the upload any more"), gone: true}
	}
	if refusal := refused(m); refusal != nil {
		return endAnswer{err: refusal}
	}
	reply, err := decode[events.Reply](m.Data)
	if err != nil {
		return endAnswer{err: events.AsError(err)}
	}
	return endAnswer{reply: reply}
}

// abort discards what was sent.
func (u *uploadSession) abort(ctx context.Context) {
	_ = u.send(ctx, events.UploadAbort, nil) // if it is lost, the service discards it after a timeout
	_ = u.c.nc.FlushTimeout(time.Second)
}
