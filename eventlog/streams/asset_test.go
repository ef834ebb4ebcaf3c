package streams_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/streams"
)

// A single copy has its place on a cluster too, which may be as young as this
// process; what a server alone says is said at once, and one that says nothing is asked
// again.
func TestAStreamWaitsForAYoungCluster(t *testing.T) {
	for _, test := range []struct {
		replicas int
		err      error
		again    bool
	}{
		{1, &jetstream.APIError{Code: 400, ErrorCode: streams.CodeNoPeers}, true},
		{1, &jetstream.APIError{Code: 503, ErrorCode: streams.CodeNotLeader}, true},
		{1, &jetstream.APIError{Code: 503, ErrorCode: streams.CodeNoJetStream}, false},
		{1, context.DeadlineExceeded, true},
		{1, nats.ErrTimeout, true},
		{1, nats.ErrNoResponders, false},
		{3, &jetstream.APIError{Code: 400, ErrorCode: streams.CodeNoPeers}, true},
		{3, context.DeadlineExceeded, true},
		{3, &jetstream.APIError{Code: 400, ErrorCode: streams.CodeNoJetStream}, false},
	} {
		c := streams.WithReplicas(test.replicas)
		tries := 0
		err := c.Patiently(t.Context(), func(context.Context) error {
			if tries++; tries > 1 {
				return nil
			}
			return test.err
		})
		if again := tries > 1; again != test.again || again != (err == nil) {
			t.Errorf("%d copies, %v: tried %d times, %v", test.replicas, test.err, tries, err)
		}
	}
}
