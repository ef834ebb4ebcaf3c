package assets

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// MaxPairs is how many keys a tenant may have, the markers of deleted ones included.
const MaxPairs = 1_000_000

// pairsBucket begins the names of the buckets of tenants' key-value pairs. It is no read model,
// so it does not begin as theirs do. A configured prefix has no dash: no two installations have
// one name.
const pairsBucket = "kv-"

// PairsBucket returns the name of a tenant's bucket.
func PairsBucket(n events.Names, tenant string) string { return n.Bucket(pairsBucket + tenant) }

// PairsStream returns the name of its stream.
func PairsStream(n events.Names, tenant string) string {
	return streams.BucketStream(PairsBucket(n, tenant))
}

// Pairs returns the stream of a tenant's key-value pairs, which is created when the first is
// set. It is not derived.
func Pairs(conn *streams.Conn, tenant string) streams.Asset {
	n := conn.Config().Names
	return streams.Asset{Config: jetstream.StreamConfig{
		Name: PairsStream(n, tenant), Description: "Skein: key-value pairs of a tenant. Only Skein writes here.",
		Subjects: []string{streams.KeyPrefix(PairsBucket(n, tenant)) + ">"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: conn.Config().Replicas, MaxMsgsPerSubject: 1, MaxMsgs: MaxPairs, MaxMsgSize: -1,
		// Deletes are not denied: what is erased is overwritten on the disk.
		AllowDirect: true, AllowRollup: true, AllowMsgTTL: true,
	}}
}

// pairsTenant returns the tenant of a stream of pairs, and reports whether it is one.
func pairsTenant(n events.Names, stream string) (tenant string, ok bool) {
	tenant, ok = strings.CutPrefix(stream, PairsStream(n, ""))
	return tenant, ok && events.ValidTenant(tenant)
}

// PairsStreams returns the streams of all tenants' key-value pairs.
func PairsStreams(ctx context.Context, conn *streams.Conn) ([]string, error) {
	var found []string
	names := conn.JetStream().StreamNames(ctx)
	for name := range names.Name() {
		if _, ok := pairsTenant(conn.Config().Names, name); ok {
			found = append(found, name)
		}
	}
	return found, names.Err()
}

// EnsurePairs brings the existing streams of pairs up to date.
func EnsurePairs(ctx context.Context, conn *streams.Conn) error {
	var found []string
	err := conn.Patiently(ctx, func(ctx context.Context) (err error) {
		found, err = PairsStreams(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range found {
		tenant, _ := pairsTenant(conn.Config().Names, name)
		if err := conn.Ensure(ctx, Pairs(conn, tenant)); err != nil {
			return err
		}
	}
	return nil
}

// Backed lists the streams that a backup copies, in order: those of Kept, and those of tenants'
// key-value pairs.
func Backed(ctx context.Context, conn *streams.Conn) ([]string, error) {
	found, err := PairsStreams(ctx, conn)
	return append(Kept(conn.Config().Names), found...), err
}
