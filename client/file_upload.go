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

// pieceTimeout is how long a piece may take to be stored.
const pieceTimeout = 30 * time.Second

// upload writes a file whose content is read piece by piece.
func (f *Files) upload(ctx context.Context, w events.WriteFile, o WriteFileOptions, from io.Reader) (*events.FileRecord, error) {
	body, id, err := f.c.command(Request{ThreadID: f.thread, Data: w, CommandID: o.CommandID, Actor: o.Actor})
	if err != nil {
		return nil, err
	}
	answer, refusal := f.c.request(ctx, f.c.opts.Names.File(f.c.opts.Tenant, "content.put"), body)
	if refusal != nil {
		return nil, refusal
	}
	begun, err := decode[begunUpload](answer)
	if err != nil {
		return nil, err
	}
	if begun.Piece < 1 || begun.Window < 1 {
		return nil, events.Errorf(events.Unavailable, "an answer that cannot be read: pieces of %d bytes, %d at a time", begun.Piece, begun.Window)
	}
	u := &sending{c: f.c, begunUpload: *begun, inbox: f.c.nc.NewInbox()}
	if u.answers, err = f.c.nc.SubscribeSync(u.inbox + ".*"); err != nil {
		return nil, events.Errorf(events.Unavailable, "the connection is closed: %w", err)
	}
	defer func() { _ = u.answers.Unsubscribe() }() // the connection may have gone
	alive := u.stayAlive()
	err = u.pieces(ctx, from)
	alive()
	if err != nil {
		u.abort()
		return nil, err
	}
	reply, err := u.end(ctx, id)
	if err != nil {
		return nil, err
	}
	return f.made(reply), nil
}

// sending is an upload under way.
type sending struct {
	c *Client
	begunUpload
	inbox   string
	answers *nats.Subscription
	sent    int64 // pieces
	open    int   // of them without an answer
}

// aliveEvery is how often the service is told that more will come: a reader may
// take its time.
const aliveEvery = 10 * time.Second

// stayAlive tells the service that more will come, until it is stopped.
func (u *sending) stayAlive() (stop func()) {
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
				_ = u.c.nc.PublishMsg(m) // the pieces tell if the connection has gone
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

// pieces sends the content, a few pieces ahead of their answers.
func (u *sending) pieces(ctx context.Context, from io.Reader) error {
	piece := make([]byte, u.Piece)
	for {
		if err := ctx.Err(); err != nil {
			return broken(err)
		}
		n, err := io.ReadFull(from, piece)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err // the caller's own
		}
		if n > 0 {
			if u.open == u.Window {
				if err := u.answered(ctx); err != nil {
					return err
				}
			}
			if err := u.send("", piece[:n]); err != nil {
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
		if err := u.answered(ctx); err != nil {
			return err
		}
	}
	return nil
}

// send sends a message of the upload. Its data may be used again.
func (u *sending) send(kind string, data []byte) error {
	n := strconv.FormatInt(u.sent, 10)
	m := nats.NewMsg(u.Subject)
	m.Header.Set(events.HeaderPiece, n)
	if kind != "" {
		m.Header.Set(events.HeaderUpload, kind)
	}
	m.Data, m.Reply = data, u.inbox+"."+n
	if err := u.c.nc.PublishMsg(m); err != nil {
		return broken(err)
	}
	return nil
}

// answered waits for the answer to a piece.
func (u *sending) answered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	m, err := u.answers.NextMsgWithContext(ctx)
	if err != nil {
		return broken(err)
	}
	if gone(m) {
		return events.Errorf(events.Unavailable, "the upload was broken off: nobody takes it any more; nothing was written")
	}
	if refusal := refused(m); refusal != nil {
		return refusal
	}
	u.open--
	return nil
}

// gone reports whether an answer is the server's, that nobody listens.
func gone(m *nats.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

// broken says that an upload was broken off.
func broken(err error) error {
	return events.Errorf(events.Unavailable, "the upload was broken off; nothing was written: %w", err)
}

// end has the command done, and asks again for its answer if it is lost.
func (u *sending) end(ctx context.Context, id string) (*events.Reply, error) {
	ctx, cancel := u.c.limited(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		refusal := u.ask(ctx)
		if refusal.reply != nil {
			return refusal.reply, nil
		}
		err := refusal.err
		if !err.Code.Retry() || u.c.nc.IsClosed() || refusal.gone || !pause(ctx, attempt) {
			if err.Code.Retry() && (attempt > 0 || err.Details != nil && err.Details.Outcome == unknown) {
				err = unknownOutcome(err)
				err.Details.ID = id
			}
			return nil, err
		}
	}
}

// endAnswer is what came of asking for the end once.
type endAnswer struct {
	reply *events.Reply
	err   *events.Error
	gone  bool
}

func (u *sending) ask(ctx context.Context) endAnswer {
	if err := u.send(events.UploadEnd, nil); err != nil {
		return endAnswer{err: events.AsError(err)}
	}
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	m, err := u.answers.NextMsgWithContext(ctx)
	switch {
	case err != nil:
		return endAnswer{err: unknownOutcome(events.Errorf(events.Unavailable, "no answer to the end of the upload: %w", err))}
	case gone(m):
		return endAnswer{err: events.Errorf(events.Unavailable, "nobody takes the upload any more"), gone: true}
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

// abort has what was sent taken away at once.
func (u *sending) abort() {
	_ = u.send(events.UploadAbort, nil) // else the service does it when nothing comes
	_ = u.c.nc.FlushTimeout(time.Second)
}
