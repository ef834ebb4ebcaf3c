package assets

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// SessionsStream returns the name of the stream of the bucket of tickets and sessions.
func SessionsStream(n events.Names) string {
	return streams.BucketStream(n.Bucket(events.SessionsBucket))
}

// Sessions returns the stream of the bucket of tickets and sessions of the HTTP edge. Each message
// has a lifetime of its own. It is not derived, and not in backups: a restore signs everybody out.
func Sessions(conn *streams.Conn) streams.Asset {
	n := conn.Config().Names
	return streams.Asset{Config: jetstream.StreamConfig{
		Name: SessionsStream(n), Description: "Skein: tickets and sessions of browsers, without their secrets. Only Skein's HTTP edge writes here.",
		Subjects: []string{streams.KeyPrefix(n.Bucket(events.SessionsBucket)) + ">"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: conn.Config().Replicas, MaxMsgsPerSubject: 1, MaxMsgSize: -1,
		AllowDirect: true, AllowRollup: true, DenyDelete: true, AllowMsgTTL: true, Duplicates: time.Second,
	}}
}
