package assets

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
)

// UnfinishedError says that a backup is being restored into a server, or that this was
// interrupted: its streams are not all there, or not all of what they are to hold. Nothing was
// changed.
type UnfinishedError struct {
	Stream string // that says so
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a restore into this server did not end, says its stream %s: what it has is incomplete; if no skein restore runs any more, "+
		"remove all streams of Skein, that one last, and restore the backup again", e.Stream)
}

// BeginRestore marks a server as one into which a backup is being restored, until
// [FinishRestore]: [CheckWhole] refuses it. The mark is a stream, so that it is where the
// restored streams are.
func BeginRestore(ctx context.Context, conn *streams.Conn) error {
	return conn.Ensure(ctx, streams.Asset{Config: jetstream.StreamConfig{
		Name: conn.Config().Names.Stream(restoreStream), Description: "Skein: a backup is being restored, or this was interrupted.",
		Subjects: []string{conn.Config().Names.Stream(restoreStream)}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: conn.Config().Replicas,
	}})
}

// FinishRestore removes the mark of [BeginRestore].
func FinishRestore(ctx context.Context, conn *streams.Conn) error {
	return conn.Patiently(ctx, func(ctx context.Context) error {
		err := conn.JetStream().DeleteStream(ctx, conn.Config().Names.Stream(restoreStream))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	})
}

// CheckRestored returns an *[UnfinishedError] if a server has the mark of [BeginRestore].
func CheckRestored(ctx context.Context, conn *streams.Conn) error {
	mark := conn.Config().Names.Stream(restoreStream)
	_, there, err := conn.Ends(ctx, mark)
	if err == nil && there {
		return &UnfinishedError{Stream: mark}
	}
	return err
}
