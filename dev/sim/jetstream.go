package sim

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// apiTimeout is how long nats.go waits for an answer of JetStream's API where
// its caller sets no bound.
const apiTimeout = 5 * time.Second

// jet is JetStream on a simulated connection. What the log, the relay and the
// runner do not use is not there.
type jet struct {
	jetstream.JetStream
	conn *Conn
}

// do sends a call of JetStream's API and waits for its answer.
func (j *jet) do(ctx context.Context, label string, run func(*Server) any) (any, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, apiTimeout)
		defer cancel()
	}
	return j.conn.call(ctx, &frame{label: label, run: run})
}

// Stream returns a stream and its current info.
func (j *jet) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	a, err := j.do(ctx, "info "+name, func(s *Server) any { return s.info(name) })
	if err != nil {
		return nil, err
	}
	return &aStream{jet: j, name: name, info: a.(*jetstream.StreamInfo)}, nil
}

// info is the leader's info of a stream. No stream allows single messages to be deleted: to
// readers, that is the same as a purge.
func (s *Server) info(name string) any {
	config := jetstream.StreamConfig{Name: name, DenyDelete: true}
	st := s.streams[name]
	if st == nil {
		return jetstream.ErrStreamNotFound
	}
	state := jetstream.StreamState{LastSeq: st.last(), FirstSeq: st.last() + 1}
	for _, m := range st.held {
		if m.gone == 0 {
			if state.Msgs++; state.Msgs == 1 {
				state.FirstSeq, state.FirstTime = m.seq, m.at
			}
		}
		state.LastTime = m.at
	}
	return &jetstream.StreamInfo{Config: config, State: state}
}

// OrderedConsumer begins to follow a stream.
func (j *jet) OrderedConsumer(ctx context.Context, name string, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	a, err := j.do(ctx, "follow "+name, func(s *Server) any {
		st := s.streams[name]
		if st == nil {
			return jetstream.ErrStreamNotFound
		}
		r := &reader{conn: j.conn, stream: st, next: max(cfg.OptStartSeq, 1), wake: make(chan struct{}, 1)}
		if cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy {
			for _, m := range st.held {
				if m == st.lastOf(m.subject, st.last()) {
					r.first = append(r.first, m)
				}
			}
			r.next = st.last() + 1
		}
		if cfg.OptStartTime != nil {
			for r.next <= st.last() && st.held[r.next-1].at.Before(*cfg.OptStartTime) {
				r.next++
			}
		}
		s.readers = append(s.readers, r)
		return &following{reader: r, pending: r.left()}
	})
	if err != nil {
		return nil, err
	}
	return a.(*following), nil
}

// count returns how many messages there are from a sequence on.
func (s *stream) count(from uint64) uint64 {
	n := uint64(0)
	for seq := from; seq <= s.last(); seq++ {
		if s.held[seq-1].gone == 0 {
			n++
		}
	}
	return n
}

// DeleteConsumer has nothing to do: a reader that stops is forgotten.
func (j *jet) DeleteConsumer(context.Context, string, string) error { return nil }

// aStream is a stream and what was known of it.
type aStream struct {
	jetstream.Stream
	jet  *jet
	name string
	info *jetstream.StreamInfo
}

func (s *aStream) CachedInfo() *jetstream.StreamInfo { return s.info }

// Info tells what is known of the stream at this moment, and how many messages it has
// under each subject that matches a filter.
func (s *aStream) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	filter, err := subjectFilter(opts)
	if err != nil {
		return nil, err
	}
	a, err := s.jet.do(ctx, "info "+s.name+" "+filter, func(srv *Server) any {
		known := srv.info(s.name)
		info, ok := known.(*jetstream.StreamInfo)
		if !ok || filter == "" {
			return known
		}
		info.State.Subjects = map[string]uint64{}
		for _, m := range srv.streams[s.name].held {
			if m.gone == 0 && matches(m.subject, filter) {
				info.State.Subjects[m.subject]++
			}
		}
		return info
	})
	if err != nil {
		return nil, err
	}
	return a.(*jetstream.StreamInfo), nil
}

// subjectFilter returns what the options of a request ask for. The type of the request
// is the client's own.
func subjectFilter(opts []jetstream.StreamInfoOpt) (string, error) {
	filter := ""
	for _, o := range opts {
		request := reflect.New(reflect.TypeOf(o).In(0).Elem())
		if err, ok := reflect.ValueOf(o).Call([]reflect.Value{request})[0].Interface().(error); ok {
			return "", err
		}
		filter = request.Elem().FieldByName("SubjectFilter").String()
	}
	return filter, nil
}

func (s *aStream) Purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	var q jetstream.StreamPurgeRequest
	for _, o := range opts {
		if err := o(&q); err != nil {
			return err
		}
	}
	_, err := s.jet.do(ctx, fmt.Sprint("purge ", s.name, q), func(srv *Server) any {
		srv.streams[s.name].purge(q.Subject, q.Sequence)
		return true
	})
	return err
}

func (s *aStream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	a, err := s.jet.do(ctx, "last of "+subject, func(srv *Server) any {
		st := srv.streams[s.name]
		if m := st.lastOf(subject, st.last()); m != nil {
			return &jetstream.RawStreamMsg{Subject: m.subject, Sequence: m.seq, Header: m.header, Data: m.data, Time: m.at}
		}
		return jetstream.ErrMsgNotFound
	})
	if err != nil {
		return nil, err
	}
	return a.(*jetstream.RawStreamMsg), nil
}

func (s *aStream) OrderedConsumer(ctx context.Context, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	return s.jet.OrderedConsumer(ctx, s.name, cfg)
}

// following is a consumer that has just begun.
type following struct {
	jetstream.Consumer
	reader  *reader
	pending uint64
}

func (f *following) CachedInfo() *jetstream.ConsumerInfo {
	return &jetstream.ConsumerInfo{NumPending: f.pending}
}

func (f *following) Messages(...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	f.reader.tell(func() { f.reader.wanted = true })
	return f.reader, nil
}

// reader is an ordered consumer: messages in order, each once, across reconnections.
type reader struct {
	conn   *Conn
	stream *stream
	first  []*stored     // the scheduler's: what comes first
	next   uint64        // the scheduler's: what comes then
	wake   chan struct{} // of capacity 1

	mu      sync.Mutex // guards what follows
	waiting []*delivered
	trouble error // told once
	wanted  bool  // somebody reads
	stopped bool
}

// delivered is a message that has arrived.
type delivered struct {
	jetstream.Msg
	m       *stored
	pending uint64
}

func (d *delivered) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{
		Sequence: jetstream.SequencePair{Stream: d.m.seq}, NumPending: d.pending, Timestamp: d.m.at,
	}, nil
}
func (d *delivered) Headers() nats.Header { return d.m.header }
func (d *delivered) Data() []byte         { return d.m.data }
func (d *delivered) Subject() string      { return d.m.subject }

// ready reports whether there is something to deliver.
func (r *reader) ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted && (len(r.first) > 0 || r.stream.next("", r.next, r.stream.last()) != nil)
}

// left returns how many messages are to come.
func (r *reader) left() uint64 { return uint64(len(r.first)) + r.stream.count(r.next) }

// deliver hands over the next message. One at a time: what a reader does with
// several would depend on which goroutine is faster.
func (r *reader) deliver() {
	var m *stored
	if len(r.first) > 0 {
		m, r.first = r.first[0], r.first[1:]
	} else {
		m = r.stream.next("", r.next, r.stream.last())
		r.next = m.seq + 1
	}
	d := &delivered{m: m, pending: r.left()}
	r.tell(func() { r.waiting = append(r.waiting, d) })
}

// tell changes what is waiting, and says so.
func (r *reader) tell(change func()) {
	r.mu.Lock()
	change()
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Next implements jetstream.MessagesContext. It ignores its options: callers that stop asking
// also stop the reader, and so does a closed connection.
func (r *reader) Next(...jetstream.NextOpt) (jetstream.Msg, error) {
	for {
		r.mu.Lock()
		switch {
		case r.trouble != nil:
			err := r.trouble
			r.trouble = nil
			r.mu.Unlock()
			return nil, err
		case r.stopped:
			r.mu.Unlock()
			return nil, jetstream.ErrMsgIteratorClosed
		case len(r.waiting) > 0:
			d := r.waiting[0]
			r.waiting = r.waiting[1:]
			r.mu.Unlock()
			return d, nil
		}
		r.mu.Unlock()
		select {
		case <-r.wake:
		case <-r.conn.closed:
			return nil, jetstream.ErrMsgIteratorClosed
		}
	}
}

// Stop implements jetstream.MessagesContext.
func (r *reader) Stop() { r.tell(func() { r.stopped = true }) }

// Drain implements jetstream.MessagesContext.
func (r *reader) Drain() { r.Stop() }

func (r *reader) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}
