package assets

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// secretsBucket is the bucket of the store's secrets, without its prefix. It is no read model, so
// its name does not begin as theirs do.
const secretsBucket = "secrets"

// SecretsStream returns the name of the stream of the store's secrets.
func SecretsStream(n events.Names) string { return streams.BucketStream(n.Bucket(secretsBucket)) }

// Secret returns the subject of a secret of the store.
func Secret(n events.Names, name string) string {
	return streams.KeyPrefix(n.Bucket(secretsBucket)) + name
}

// Secrets returns the stream of the store's secrets, one a subject, which are created once and
// never change. It is not derived, and not in backups. Reads are answered by its leader.
func Secrets(conn *streams.Conn) streams.Asset {
	n := conn.Config().Names
	return streams.Asset{Config: jetstream.StreamConfig{
		Name: SecretsStream(n), Description: "Skein: secrets that its processes share. Only Skein reads and writes here.",
		Subjects: []string{Secret(n, ">")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: conn.Config().Replicas, MaxMsgsPerSubject: 1, MaxMsgSize: -1,
		AllowRollup: true, DenyDelete: true, Duplicates: time.Second, // as a bucket of any client
	}}
}
