package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// clusterStart is how long a cluster may take to have a leader for what is made
// ready: its servers may have been started with this process.
const clusterStart = time.Minute

// patiently does what makes a stream ready, on a cluster again while it says
// that it cannot yet.
func (l *Log) patiently(ctx context.Context, do func(context.Context) error) error {
	return again(ctx, clusterStart, 250*time.Millisecond, func() error { return do(ctx) }, func(err error) bool {
		return passes(err) && (l.cfg.Replicas != 1 || young(err))
	})
}

// hearing is how long it may take until every server of a cluster knows who
// listens to a subject.
const hearing = 10 * time.Second

// heard asks again while nobody is there to hear it.
func heard(ctx context.Context, ask func() error) error {
	return again(ctx, hearing, 50*time.Millisecond, ask, func(err error) bool { return errors.Is(err, nats.ErrNoResponders) })
}

// again does something again, with a pause, while it fails in a way that may pass,
// and for so long at most.
func again(ctx context.Context, limit, rest time.Duration, do func() error, mayPass func(error) bool) error {
	for deadline := time.Now().Add(limit); ; {
		err := do()
		if err == nil || !mayPass(err) || time.Now().After(deadline) || !sleep(ctx, rest) {
			return err
		}
	}
}

// Codes of the cluster's, beside those of classify.
const (
	codeNoPeers       = 10005 // no server to place a stream on
	codeNotLeader     = 10009 // this server does not lead (any more)
	codeNoJetStream   = 10076
	codeNoneInAccount = 10039
)

// young reports whether an error is what only a cluster says, before its servers
// have found each other. A single copy has its place there too.
func young(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeNoPeers || api.ErrorCode == codeNotLeader)
}

// passes reports whether the cluster may do later what it has refused now.
func passes(err error) bool {
	var api *jetstream.APIError
	var refused *brokerError
	if errors.As(err, &refused) { // by the leader of a stream, see Log.leader
		return refused.Code == 503
	}
	if !errors.As(err, &api) {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders)
	}
	switch api.ErrorCode {
	case codeNoJetStream, codeNoneInAccount, codeInsufficient:
		return false
	case codeNoPeers, codeNotLeader, jetstream.JSErrCodeStreamNameInUse: // another process makes it at this moment
		return true
	}
	return api.Code == 503
}
