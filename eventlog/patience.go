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
	for deadline := time.Now().Add(clusterStart); ; {
		err := do(ctx)
		if err == nil || !passes(err) || l.cfg.Replicas == 1 && !young(err) || time.Now().After(deadline) || !sleep(ctx, 250*time.Millisecond) {
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
