package files

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/service"
)

// Window is how many unacknowledged pieces an upload may have.
const Window = 8

// stepsAhead is how many unanswered messages an upload may have. A client that respects the window
// sends fewer.
const stepsAhead = 4 * Window

// lingerFor is how long a finished upload replies to repeated end messages.
const lingerFor = 10 * time.Second

// upload is content that arrives piece by piece. Its messages arrive in order, on a
// subscription of its own.
type upload struct {
	service *Service
	write   *commands.FileWrite
	w       *writer
	steps   chan step // in order of arrival; never full
	release func()    // frees its place in the pool

	mu     sync.Mutex // guards the fields below, and sending with w
	next   int64      // the next piece
	ended  bool       // the end message arrived
	broken bool       // no further messages are accepted
}

// step is a message, and what the upload has to do for it.
type step struct {
	msg  *nats.Msg
	sent jetstream.PubAckFuture // a piece
	wait bool                   // a sign of life: more messages will follow
	err  error                  // why the message is refused
}

// begun is the reply to content.put.
type begun struct {
	Subject string `json:"subject"`    // receives the pieces
	Piece   int64  `json:"pieceBytes"` // of each piece but the last
	Window  int    `json:"window"`     // unacknowledged pieces allowed
}

// begin replies to content.put.
func (s *Service) begin(ctx context.Context, tenant string, body []byte, meta service.Meta) (any, error) {
	write, err := s.writes.BeginWrite(ctx, tenant, body, commands.Meta{TraceParent: meta.TraceParent})
	if err != nil {
		return nil, err
	}
	leave, err := s.cfg.Uploads.Try(tenant)
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "%w", err)
	}
	u := &upload{service: s, write: write, w: s.store.newWriter(tenant), steps: make(chan step, stepsAhead)}
	subject := s.log.Config().Names.Upload(tenant, strings.ReplaceAll(uuid.NewString(), "-", ""))
	sub, err := s.log.Conn().Subscribe(subject, u.take)
	if err == nil {
		err = sub.SetPendingLimits(4*Window, 3*Window*events.FilePieceBytes)
	}
	if err == nil {
		err = s.log.Conn().FlushTimeout(ackTimeout) // the subscription must exist before the first piece arrives
	}
	if err != nil {
		leave()
		return nil, fmt.Errorf("start upload: %w", err)
	}
	u.release = leave
	s.running.Go(func() {
		defer u.release()
		u.run(quota.Continue(ctx, s.ctx))
		_ = sub.Unsubscribe() // fails only if the connection is closed
	})
	return begun{Subject: subject, Piece: events.FilePieceBytes, Window: Window}, nil
}

// take handles a message: a piece with its number, the end, an abort, or a sign of life.
func (u *upload) take(m *nats.Msg) {
	if !u.service.log.Config().Names.Answerable(m.Reply) {
		m.Reply = "" // the piece is accepted without a reply, because a reply to that subject could do harm
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	st := step{msg: m}
	switch kind := m.Header.Get(events.HeaderUpload); {
	case u.broken || len(u.steps) == cap(u.steps):
		u.broken = true
		u.refuse(m, events.Errorf(events.InvalidRequest, "the upload was aborted, or has too many unacknowledged pieces"))
		return
	case kind == events.UploadEnd:
		st.err = u.awaited(m)
		u.ended = true
	case kind == events.UploadWait:
		st.wait = true
	case kind == "" && !u.ended:
		st.sent, st.err = u.piece(m)
	default:
		st.err = events.Errorf(events.InvalidRequest, "the upload was aborted")
	}
	u.broken = st.err != nil
	u.steps <- st
}

// awaited returns an error unless the message has the next piece's number.
func (u *upload) awaited(m *nats.Msg) error {
	if n := m.Header.Get(events.HeaderPiece); n != strconv.FormatInt(u.next, 10) {
		return events.Errorf(events.InvalidRequest, "the number of the next piece is %d, not %.20q: some were lost; start the upload again", u.next, n)
	}
	return nil
}

func (u *upload) piece(m *nats.Msg) (jetstream.PubAckFuture, error) {
	if err := u.awaited(m); err != nil {
		return nil, err
	}
	if len(m.Data) == 0 || len(m.Data) > events.FilePieceBytes || u.w.size%events.FilePieceBytes != 0 {
		return nil, events.Errorf(events.InvalidRequest, "each piece but the last has %d bytes", events.FilePieceBytes)
	}
	u.next++
	return u.w.send(m.Data)
}

// run performs the steps until the upload is finished, refused or dropped. It acknowledges a piece
// only when the tenant's quota allows it to send more.
func (u *upload) run(ctx context.Context) {
	idle := time.NewTimer(u.service.cfg.Idle)
	defer idle.Stop()
	longest := time.NewTimer(u.service.cfg.Longest)
	defer longest.Stop()
	for {
		select {
		case st := <-u.steps:
			if st.err == nil && st.sent != nil {
				if st.err = u.w.await(ctx, st.sent); st.err == nil {
					st.err = quota.SpendRequests(ctx, 0, len(st.msg.Data))
				}
			}
			switch {
			case st.err != nil:
				u.refuse(st.msg, st.err)
				u.drop()
				return
			case st.sent == nil && !st.wait:
				u.end(ctx, st.msg)
				return
			}
			u.answer(st.msg, nil)
			idle.Reset(u.service.cfg.Idle)
		case <-idle.C:
			u.drop()
			u.service.logger.Debug().Str("tenant", u.w.tenant).Int64("bytes", u.w.size).Msg("dropped an idle upload")
			return
		case <-longest.C:
			u.drop()
			u.service.logger.Debug().Str("tenant", u.w.tenant).Int64("bytes", u.w.size).Msg("dropped an upload that took too long")
			return
		case <-ctx.Done():
			u.drop()
			return
		}
	}
}

// drop deletes the pieces of the upload. It first waits for pieces in flight, which would
// otherwise be stored after the deletion.
func (u *upload) drop() {
	u.mu.Lock()
	u.broken = true
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.service.ctx), ackTimeout)
	defer cancel()
	for {
		select {
		case st := <-u.steps:
			if st.sent != nil {
				_ = u.w.await(ctx, st.sent) // the upload is dropped either way
			}
			u.refuse(st.msg, events.Errorf(events.InvalidRequest, "the upload was aborted"))
			continue
		default:
		}
		u.w.drop(ctx)
		return
	}
}

// end names the content, runs the command, and replies. For a while it also replies to repeated
// end messages.
func (u *upload) end(ctx context.Context, m *nats.Msg) {
	content, err := u.w.finish(ctx)
	if err != nil {
		u.refuse(m, err)
		return
	}
	u.release()
	linger := time.NewTimer(lingerFor)
	defer linger.Stop()
	for {
		reply, err := u.write.Finish(ctx, content)
		if err == nil {
			var body []byte
			if body, err = json.Marshal(reply, json.Deterministic(true)); err == nil {
				u.answer(m, body)
			}
		}
		if err != nil {
			u.refuse(m, err)
			if !events.AsError(err).Retry() {
				return
			}
		}
		select {
		case st := <-u.steps: // the reply was lost, or told the client to try again
			m = st.msg // a late sign of life gets the same reply
		case <-linger.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (u *upload) answer(m *nats.Msg, body []byte) {
	if m.Reply == "" {
		return
	}
	if err := m.Respond(body); err != nil {
		u.service.logger.Debug().Err(err).Msg("send reply to upload")
	}
}

func (u *upload) refuse(m *nats.Msg, err error) {
	e := events.AsError(err)
	if e.Code == events.Unavailable && e.Cause != nil {
		u.service.logger.Warn().AnErr("cause", e.Cause).Str("tenant", u.w.tenant).Msg("upload refused")
	}
	answer := nats.NewMsg(m.Reply)
	answer.Header = e.Headers()
	answer.Data = events.EncodeError(e)
	if m.Reply == "" {
		return
	}
	if err := u.service.log.Conn().PublishMsg(answer); err != nil {
		u.service.logger.Debug().Err(err).Msg("send reply to upload")
	}
}
