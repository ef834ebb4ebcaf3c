package streams_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// ask publishes a message with some headers (name, value, ...) and returns what
// classify says of the answer, and the code.
func ask(l *eventlog.Log, subject string, body []byte, headers ...string) (streams.Outcome, int) {
	m := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	for i := 0; i < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	ack, err := l.Streams().Publish(m)
	if ack.Error != nil {
		return streams.Classify(err, ack.Error), ack.Error.ErrCode
	}
	return streams.Classify(err, nil), 0
}

// logStream returns the configuration of the log's stream.
func logStream(t *testing.T, l *eventlog.Log) jetstream.StreamConfig {
	t.Helper()
	stream, err := l.JetStream().Stream(t.Context(), l.Config().Names.Stream(assets.LogStream))
	logtest.Must(t, err)
	return stream.CachedInfo().Config
}

// reshape changes the log's stream.
func reshape(t *testing.T, l *eventlog.Log, change func(*jetstream.StreamConfig)) {
	t.Helper()
	cfg := logStream(t, l)
	change(&cfg)
	if _, err := l.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func TestClassify_ServerErrors(t *testing.T) {
	const one, two = "skein.log.acme.T-1", "skein.log.acme.T-2"
	big := make([]byte, 2<<10)
	for name, test := range map[string]struct {
		want streams.Outcome
		code int
		ask  func(t *testing.T, l *eventlog.Log) (streams.Outcome, int)
	}{
		"stored": {streams.Stored, 0, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			return ask(l, one, nil, streams.HeaderExpected, "0")
		}},
		"wrong last sequence": {streams.Conflict, streams.CodeWrongLastSequence, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			return ask(l, one, nil, streams.HeaderExpected, "7")
		}},
		"wrong last id": {streams.Conflict, streams.CodeWrongLastID, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			return ask(l, one, nil, streams.HeaderExpectedID, "somebody's")
		}},
		"a subject twice in a batch": {streams.InFlight, streams.CodeWrongLastInFlight, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			ask(l, one, nil, streams.HeaderBatchID, "b", streams.HeaderBatchSequence, "1", streams.HeaderExpected, "0")
			return ask(l, one, nil, streams.HeaderBatchID, "b", streams.HeaderBatchSequence, "2", streams.HeaderExpected, "0", streams.HeaderBatchCommit, "1")
		}},
		"a gap in a batch": {streams.Unknown, streams.CodeBatchIncomplete, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			ask(l, one, nil, streams.HeaderBatchID, "b", streams.HeaderBatchSequence, "1")
			return ask(l, two, nil, streams.HeaderBatchID, "b", streams.HeaderBatchSequence, "3", streams.HeaderBatchCommit, "1")
		}},
		"a known id in a batch": {streams.Conflict, streams.CodeBatchDuplicate, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			ask(l, one, nil, streams.HeaderID, "x")
			return ask(l, two, nil, streams.HeaderID, "x", streams.HeaderBatchID, "b", streams.HeaderBatchSequence, "1", streams.HeaderBatchCommit, "1")
		}},
		"too many in a batch": {streams.TooMany, streams.CodeBatchTooLarge, func(t *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			var msgs []*nats.Msg
			for i := range 1001 {
				msgs = append(msgs, &nats.Msg{Subject: one + strconv.Itoa(i)})
			}
			ack, err := l.Streams().PublishBatch(msgs)
			if err != nil || ack.Error == nil {
				t.Fatalf("%+v: %v", ack, err)
			}
			return streams.Classify(err, ack.Error), ack.Error.ErrCode
		}},
		"too many batches": {streams.Unavailable, streams.CodeBatchTooManyOpen, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			for i := range 50 {
				_ = l.Conn().PublishMsg(&nats.Msg{Subject: one, Header: nats.Header{streams.HeaderBatchID: {strconv.Itoa(i)}, streams.HeaderBatchSequence: {"1"}}})
			}
			got, code := ask(l, one, nil, streams.HeaderBatchID, "b", streams.HeaderBatchSequence, "1")
			for i := range 50 { // a gap ends each, so that the server leaves no files
				ask(l, one, nil, streams.HeaderBatchID, strconv.Itoa(i), streams.HeaderBatchSequence, "3")
			}
			return got, code
		}},
		"no batches": {streams.Unavailable, 10174, func(t *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false })
			return ask(l, one, nil, streams.HeaderBatchID, "b", streams.HeaderBatchSequence, "1", streams.HeaderBatchCommit, "1")
		}},
		"over the stream's limit": {streams.TooLarge, streams.CodeMessageTooLarge, func(t *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1 << 10 })
			return ask(l, one, big)
		}},
		"full": {streams.Unavailable, streams.CodeStreamStoreFailed, func(t *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 10 })
			return ask(l, one, big)
		}},
		"sealed": {streams.Unavailable, 10109, func(t *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			reshape(t, l, func(c *jetstream.StreamConfig) { c.Sealed = true })
			return ask(l, one, nil)
		}},
		"no stream": {streams.Unavailable, 0, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) { return ask(l, "nobody.here", nil) }},
		"no answer": {streams.Unknown, 0, func(t *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			if _, err := l.Conn().SubscribeSync("silence"); err != nil {
				t.Fatal(err)
			}
			l.Streams().SetAckTimeout(50 * time.Millisecond)
			return ask(l, "silence", nil)
		}},
		"over the server's limit": {streams.TooLarge, 0, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) { return ask(l, one, make([]byte, 5<<20)) }},
		"closed": {streams.Unknown, 0, func(_ *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			l.Conn().Close()
			return ask(l, one, nil)
		}},
		"an answer that is no acknowledgement": {streams.Unknown, 0, func(t *testing.T, l *eventlog.Log) (streams.Outcome, int) {
			if _, err := l.Conn().Subscribe("odd", func(m *nats.Msg) { _ = m.Respond([]byte("what?")) }); err != nil {
				t.Fatal(err)
			}
			return ask(l, "odd", nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := logtest.Start(t)
			l.Streams().SetAckTimeout(natstest.Patience)
			if got, code := test.ask(t, l); got != test.want || code != test.code {
				t.Errorf("outcome %d by code %d, want %d by %d", got, code, test.want, test.code)
			}
		})
	}
}

func TestClassify_ClientErrors(t *testing.T) {
	for err, want := range map[error]streams.Outcome{
		nats.ErrNoResponders: streams.Unavailable, nats.ErrConnectionDraining: streams.Unavailable, nats.ErrReconnectBufExceeded: streams.Unavailable,
		nats.ErrMaxPayload: streams.TooLarge, nats.ErrTimeout: streams.Unknown, nats.ErrConnectionClosed: streams.Unknown, nats.ErrDisconnected: streams.Unknown,
		context.DeadlineExceeded: streams.Unknown, context.Canceled: streams.Unknown, errors.New("odd"): streams.Unknown,
	} {
		if got := streams.Classify(err, nil); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
		if got := streams.Classify(fmt.Errorf("wrapped: %w", err), nil); got != want {
			t.Errorf("%v, wrapped: %d, want %d", err, got, want)
		}
	}
	for _, test := range []struct {
		status, code int
		want         streams.Outcome
	}{
		{503, streams.CodeInsufficient, streams.Unavailable}, {429, streams.CodeTooManyWaiting, streams.Unavailable}, {500, streams.CodeStreamOffline, streams.Unavailable},
		{503, streams.CodeClusterUnavailable, streams.Unavailable}, {503, 1, streams.Unavailable}, {429, 1, streams.Unavailable}, {400, 1, streams.Unavailable},
		{500, 1, streams.Unknown}, {0, 0, streams.Unknown}, {400, streams.CodeBatchIncomplete, streams.Unknown},
	} {
		// The text says something else each time: only the codes may count.
		for _, text := range []string{"", "wrong last sequence: 7", "atomic publish batch is incomplete", "message size exceeds maximum allowed"} {
			if got := streams.Classify(nil, &streams.Refusal{Code: test.status, ErrCode: test.code, Description: text}); got != test.want {
				t.Errorf("%d, %d, %q: %d, want %d", test.status, test.code, text, got, test.want)
			}
		}
	}
}
