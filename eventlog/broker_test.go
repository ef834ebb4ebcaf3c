package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ask publishes a message with some headers (name, value, ...) and gives what
// classify says of the answer, and the code.
func (l *Log) ask(subject string, body []byte, headers ...string) (outcome, int) {
	m := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	for i := 0; i < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	ack, err := l.request(m)
	if ack.Error != nil {
		return classify(err, ack.Error), ack.Error.ErrCode
	}
	return classify(err, nil), 0
}

// reshape changes the log's stream.
func reshape(t *testing.T, l *Log, change func(*jetstream.StreamConfig)) {
	t.Helper()
	cfg := streams(t, l)[l.cfg.Names.Stream(LogStream)].Config
	change(&cfg)
	if _, err := l.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func TestClassifyWhatTheServerSays(t *testing.T) {
	const one, two = "skein.log.acme.T-1", "skein.log.acme.T-2"
	big := make([]byte, 2<<10)
	for name, test := range map[string]struct {
		want outcome
		code int
		ask  func(t *testing.T, l *Log) (outcome, int)
	}{
		"stored": {stored, 0, func(_ *testing.T, l *Log) (outcome, int) { return l.ask(one, nil, headerExpected, "0") }},
		"wrong last sequence": {conflict, codeWrongLastSequence, func(_ *testing.T, l *Log) (outcome, int) {
			return l.ask(one, nil, headerExpected, "7")
		}},
		"wrong last id": {conflict, codeWrongLastID, func(_ *testing.T, l *Log) (outcome, int) {
			return l.ask(one, nil, headerExpectedID, "somebody's")
		}},
		"a subject twice in a batch": {underway, codeWrongLastUnderWay, func(_ *testing.T, l *Log) (outcome, int) {
			l.ask(one, nil, headerBatchID, "b", headerBatchSequence, "1", headerExpected, "0")
			return l.ask(one, nil, headerBatchID, "b", headerBatchSequence, "2", headerExpected, "0", headerBatchCommit, "1")
		}},
		"a gap in a batch": {unknown, codeBatchIncomplete, func(_ *testing.T, l *Log) (outcome, int) {
			l.ask(one, nil, headerBatchID, "b", headerBatchSequence, "1")
			return l.ask(two, nil, headerBatchID, "b", headerBatchSequence, "3", headerBatchCommit, "1")
		}},
		"a known id in a batch": {conflict, codeBatchDuplicate, func(_ *testing.T, l *Log) (outcome, int) {
			l.ask(one, nil, headerID, "x")
			return l.ask(two, nil, headerID, "x", headerBatchID, "b", headerBatchSequence, "1", headerBatchCommit, "1")
		}},
		"too many in a batch": {tooMany, codeBatchTooLarge, func(t *testing.T, l *Log) (outcome, int) {
			var msgs []*nats.Msg
			for i := range 1001 {
				msgs = append(msgs, &nats.Msg{Subject: one + strconv.Itoa(i)})
			}
			ack, err := l.publishBatch(msgs)
			if err != nil || ack.Error == nil {
				t.Fatalf("%+v: %v", ack, err)
			}
			return classify(err, ack.Error), ack.Error.ErrCode
		}},
		"too many batches": {unavailable, codeBatchTooManyOpen, func(_ *testing.T, l *Log) (outcome, int) {
			for i := range 50 {
				_ = l.nc.PublishMsg(&nats.Msg{Subject: one, Header: nats.Header{headerBatchID: {strconv.Itoa(i)}, headerBatchSequence: {"1"}}})
			}
			got, code := l.ask(one, nil, headerBatchID, "b", headerBatchSequence, "1")
			for i := range 50 { // a gap ends each, so that the server leaves no files
				l.ask(one, nil, headerBatchID, strconv.Itoa(i), headerBatchSequence, "3")
			}
			return got, code
		}},
		"no batches": {unavailable, 10174, func(t *testing.T, l *Log) (outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false })
			return l.ask(one, nil, headerBatchID, "b", headerBatchSequence, "1", headerBatchCommit, "1")
		}},
		"over the stream's limit": {tooLarge, codeMessageTooLarge, func(t *testing.T, l *Log) (outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1 << 10 })
			return l.ask(one, big)
		}},
		"full": {unavailable, codeStreamStoreFailed, func(t *testing.T, l *Log) (outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 10 })
			return l.ask(one, big)
		}},
		"sealed": {unavailable, 10109, func(t *testing.T, l *Log) (outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.Sealed = true })
			return l.ask(one, nil)
		}},
		"no stream": {unavailable, 0, func(_ *testing.T, l *Log) (outcome, int) { return l.ask("nobody.here", nil) }},
		"no answer": {unknown, 0, func(t *testing.T, l *Log) (outcome, int) {
			if _, err := l.nc.SubscribeSync("silence"); err != nil {
				t.Fatal(err)
			}
			l.cfg.AckTimeout = 50 * time.Millisecond
			return l.ask("silence", nil)
		}},
		"over the server's limit": {tooLarge, 0, func(_ *testing.T, l *Log) (outcome, int) { return l.ask(one, make([]byte, 5<<20)) }},
		"closed": {unknown, 0, func(_ *testing.T, l *Log) (outcome, int) {
			l.nc.Close()
			return l.ask(one, nil)
		}},
		"an answer that is no acknowledgement": {unknown, 0, func(t *testing.T, l *Log) (outcome, int) {
			if _, err := l.nc.Subscribe("odd", func(m *nats.Msg) { _ = m.Respond([]byte("what?")) }); err != nil {
				t.Fatal(err)
			}
			return l.ask("odd", nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t)
			l.cfg.AckTimeout = patience
			if got, code := test.ask(t, l); got != test.want || code != test.code {
				t.Errorf("outcome %d by code %d, want %d by %d", got, code, test.want, test.code)
			}
		})
	}
}

func TestClassifyTheRest(t *testing.T) {
	for err, want := range map[error]outcome{
		nats.ErrNoResponders: unavailable, nats.ErrConnectionDraining: unavailable, nats.ErrReconnectBufExceeded: unavailable,
		nats.ErrMaxPayload: tooLarge, nats.ErrTimeout: unknown, nats.ErrConnectionClosed: unknown, nats.ErrDisconnected: unknown,
		context.DeadlineExceeded: unknown, context.Canceled: unknown, errors.New("odd"): unknown,
	} {
		if got := classify(err, nil); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
		if got := classify(fmt.Errorf("wrapped: %w", err), nil); got != want {
			t.Errorf("%v, wrapped: %d, want %d", err, got, want)
		}
	}
	for _, test := range []struct {
		status, code int
		want         outcome
	}{
		{503, codeInsufficient, unavailable}, {429, codeTooManyWaiting, unavailable}, {500, codeStreamOffline, unavailable},
		{503, codeClusterUnavailable, unavailable}, {503, 1, unavailable}, {429, 1, unavailable}, {400, 1, unavailable},
		{500, 1, unknown}, {0, 0, unknown}, {400, codeBatchIncomplete, unknown},
	} {
		// The text says something else each time: only the codes may count.
		for _, text := range []string{"", "wrong last sequence: 7", "atomic publish batch is incomplete", "message size exceeds maximum allowed"} {
			if got := classify(nil, &brokerError{Code: test.status, ErrCode: test.code, Description: text}); got != test.want {
				t.Errorf("%d, %d, %q: %d, want %d", test.status, test.code, text, got, test.want)
			}
		}
	}
}

func TestErrorsUnwrap(t *testing.T) {
	cause := errors.New("cause")
	for _, err := range []error{&UnknownError{cause}, &UnavailableError{cause}, &FencedError{"S", cause}} {
		if !errors.Is(err, cause) || err.Error() == "" {
			t.Errorf("%T hides its cause", err)
		}
	}
}
