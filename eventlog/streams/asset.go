package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/retry"
)

// AssetError says that a stream or bucket that Skein needs is there, but is
// such that using it would lose data. Nothing was changed.
type AssetError struct {
	Name    string
	Problem string
	Hint    string
}

func (e *AssetError) Error() string {
	return fmt.Sprintf("stream %s: %s; %s", e.Name, e.Problem, e.Hint)
}

// Asset is a stream as it is wanted.
type Asset struct {
	Config  jetstream.StreamConfig
	Derived bool // it can be deleted and made again
	// Owns reports whether the stream may have a subject. Widen merges the subjects that it
	// has with those of Config. Both are nil for a stream that has the subjects of Config alone.
	Owns  func(subject string) bool
	Widen func(have, want []string) []string
}

func (c *Conn) Ensure(ctx context.Context, a Asset) error {
	return c.Patiently(ctx, func(ctx context.Context) error { return c.ensureOnce(ctx, a) })
}

func (c *Conn) ensureOnce(ctx context.Context, a Asset) error {
	want := a.Config
	stream, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateStream(ctx, want)
		return AssetFailed(want.Name, err)
	}
	if err != nil {
		return AssetFailed(want.Name, err)
	}
	have := stream.CachedInfo().Config
	if err := CheckFormat("stream "+want.Name, have.Metadata); err != nil {
		return err
	}
	if a.Owns != nil {
		want.Subjects = a.Widen(have.Subjects, want.Subjects)
	}
	if problem := losesData(have, want, a); problem != "" {
		return &AssetError{Name: want.Name, Problem: problem, Hint: "rename or remove that stream, or choose another prefix"}
	}
	if a.Derived && have.PersistMode != want.PersistMode {
		// The server does not change the mode. The stream is derived:
		// re-created, it is filled from the log.
		created := merged(have, want)
		created.PersistMode = want.PersistMode
		if err := c.js.DeleteStream(ctx, want.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) { // by another process
			return AssetFailed(want.Name, err)
		}
		_, err = c.js.CreateStream(ctx, created)
		return AssetFailed(want.Name, err)
	}
	if same(have, want) {
		return nil
	}
	if want.Duplicates == 0 && have.Duplicates > shortestWindow {
		// The server throws away the ids that are past the window, and takes the new
		// window only then (stream.go, updateWithAdvisory): with one update they may stay
		// for as long as the old one. With two, all are past the window at the second.
		first := merged(have, want)
		first.Duplicates = shortestWindow
		if _, err := c.js.UpdateStream(ctx, first); err != nil {
			return AssetFailed(want.Name, err)
		}
		if !retry.Sleep(ctx, shortestWindow) {
			return context.Cause(ctx)
		}
	}
	_, err = c.js.UpdateStream(ctx, merged(have, want))
	return AssetFailed(want.Name, err)
}

// shortestWindow is the shortest in which the server looks for duplicates, besides
// none.
const shortestWindow = 100 * time.Millisecond

// losesData says why an existing stream must not be used, or nothing.
func losesData(have, want jetstream.StreamConfig, a Asset) string {
	switch {
	case !takes(have.Subjects, want.Subjects, a.Owns):
		return fmt.Sprintf("it takes the subjects %v, not %v", have.Subjects, want.Subjects)
	case have.Retention != want.Retention:
		return fmt.Sprintf("its retention is %v, not %v", have.Retention, want.Retention)
	case have.Storage != want.Storage:
		return "it is kept in memory"
	case have.Mirror != nil || len(have.Sources) > 0 && !sameSources(have.Sources, want.Sources):
		return "it is a mirror or has sources"
	case have.SubjectTransform != nil:
		return "it changes the subjects of messages"
	case have.Sealed:
		return "it is sealed"
	case have.NoAck:
		return "it acknowledges nothing"
	case have.MaxMsgsPerSubject != unlimited(want.MaxMsgsPerSubject) && !(want.DiscardNewPerSubject && (have.DiscardNewPerSubject || have.MaxMsgsPerSubject < 0)):
		return fmt.Sprintf("it keeps %d messages a subject, not %d", have.MaxMsgsPerSubject, unlimited(want.MaxMsgsPerSubject))
	case a.Derived:
		return ""
	case have.MaxAge != want.MaxAge && want.MaxAge == 0:
		return fmt.Sprintf("it drops messages after %v", have.MaxAge)
	case have.Discard == jetstream.DiscardOld && (have.MaxMsgs > 0 || have.MaxBytes > 0):
		return "it drops its oldest messages when it is full"
	case have.PersistMode == jetstream.AsyncPersistMode:
		return "it acknowledges messages before they are stored"
	case have.Replicas > max(want.Replicas, 1):
		return fmt.Sprintf("it keeps %d copies, and this process was told to keep %d (--replicas)", have.Replicas, max(want.Replicas, 1))
	}
	return ""
}

func unlimited(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// same reports whether nothing that Skein sets differs.
func same(have, want jetstream.StreamConfig) bool {
	return have.Description == want.Description && have.Replicas == want.Replicas && have.MaxAge == want.MaxAge &&
		have.Discard == want.Discard && have.AllowDirect == want.AllowDirect && have.AllowAtomicPublish == want.AllowAtomicPublish &&
		(have.DenyDelete || !want.DenyDelete) && have.AllowRollup == want.AllowRollup && have.Duplicates == want.Duplicates &&
		have.Compression == want.Compression && have.AllowMsgSchedules == want.AllowMsgSchedules &&
		(!want.DiscardNewPerSubject || have.DiscardNewPerSubject && have.MaxMsgsPerSubject == want.MaxMsgsPerSubject) &&
		slices.Equal(have.Subjects, want.Subjects) && sameRePublish(have.RePublish, want.RePublish) && sameSources(have.Sources, want.Sources) &&
		hasAll(have.Metadata, want.Metadata)
}

// hasAll reports whether metadata has all that is wanted: the server and a restore write there too.
func hasAll(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

func sameSources(have, want []*jetstream.StreamSource) bool {
	return slices.EqualFunc(have, want, func(a, b *jetstream.StreamSource) bool { return reflect.DeepEqual(a, b) })
}

func sameRePublish(have, want *jetstream.RePublish) bool {
	return have == want || have != nil && want != nil && *have == *want
}

// merged returns what exists with the settings of Skein, so that an operator's limits and
// placement stay.
func merged(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	out := have
	out.Description, out.Replicas, out.MaxAge, out.Discard = want.Description, want.Replicas, want.MaxAge, want.Discard
	out.AllowDirect, out.AllowAtomicPublish = want.AllowDirect, want.AllowAtomicPublish
	out.DenyDelete = have.DenyDelete || want.DenyDelete // the server never takes it back
	out.AllowRollup, out.Duplicates, out.Compression = want.AllowRollup, want.Duplicates, want.Compression
	out.AllowMsgSchedules = want.AllowMsgSchedules
	out.Subjects, out.RePublish, out.Sources = want.Subjects, want.RePublish, want.Sources
	if len(want.Metadata) > 0 {
		out.Metadata = maps.Clone(have.Metadata)
		if out.Metadata == nil {
			out.Metadata = map[string]string{}
		}
		maps.Copy(out.Metadata, want.Metadata)
	}
	if want.DiscardNewPerSubject { // else it is as losesData wants it
		out.DiscardNewPerSubject, out.MaxMsgsPerSubject = true, want.MaxMsgsPerSubject
	}
	return out
}

func AssetFailed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s could not be made ready: %w", name, err)
}

// takes reports whether a stream takes what it should and nothing that is not
// its own.
func takes(have, want []string, owns func(string) bool) bool {
	if owns == nil {
		return slices.Equal(have, want)
	}
	return len(have) > 0 && !slices.ContainsFunc(have, func(s string) bool { return !owns(s) })
}

// ensureObjects makes an object store, or brings it up to date.
func (c *Conn) EnsureObjects(ctx context.Context, bucket, description string) error {
	name := c.cfg.Names.Bucket(bucket)
	if store, err := c.js.ObjectStore(ctx, name); err == nil {
		if status, err := store.Status(ctx); err == nil && status.Replicas() == c.cfg.Replicas {
			return nil
		}
	}
	_, err := c.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: name, Description: description, Replicas: c.cfg.Replicas,
	})
	return AssetFailed(name, err)
}

// ensureContents makes a store that is not derived: one that would lose what is
// put into it is refused.
func (c *Conn) EnsureContents(ctx context.Context, bucket, description string) error {
	if err := c.EnsureObjects(ctx, bucket, description); err != nil {
		return err
	}
	name := "OBJ_" + c.cfg.Names.Bucket(bucket)
	stream, err := c.js.Stream(ctx, name)
	if err != nil {
		return AssetFailed(name, err)
	}
	have := stream.CachedInfo().Config
	have.Subjects = have.Subjects[:1] // of chunks; that of names was made with it
	want := jetstream.StreamConfig{Subjects: have.Subjects, Replicas: c.cfg.Replicas}
	if problem := losesData(have, want, Asset{Config: want}); problem != "" {
		return &AssetError{Name: name, Problem: problem, Hint: "rename or remove that stream, or choose another prefix"}
	}
	return nil
}
