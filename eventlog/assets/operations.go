package assets

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
)

// OperationsBucket is the bucket of what operators' programs report, without its prefix. It is no
// read model, so its name does not begin as theirs do.
const OperationsBucket = "operations"

// OperationsKept is how many reports of each kind the bucket keeps.
const OperationsKept = 20

// Operations returns the stream of the bucket, with a key for each kind of operation, whose
// history it keeps. It is not derived, and not in backups.
func Operations(conn *streams.Conn) streams.Asset {
	bucket := conn.Config().Names.Bucket(OperationsBucket)
	return streams.Asset{Config: jetstream.StreamConfig{
		Name: streams.BucketStream(bucket), Description: "Skein: the last audits and backups, as their programs reported them. Only Skein writes here.",
		Subjects: []string{streams.KeyPrefix(bucket) + ">"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: conn.Config().Replicas, MaxMsgsPerSubject: OperationsKept, MaxMsgSize: -1,
		AllowDirect: true, AllowRollup: true, DenyDelete: true, Duplicates: time.Second,
	}}
}
