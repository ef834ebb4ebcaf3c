package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Kind is the kind of a finding.
type Kind string

// The kinds of findings.
const (
	KindBroken     Kind = "broken"     // a commit cannot be decoded
	KindChain      Kind = "chain"      // a commit was altered, dropped, or moved
	KindSequence   Kind = "sequence"   // messages are missing from the log
	KindVersion    Kind = "version"    // a thread's versions have a gap or a repeat
	KindSchema     Kind = "schema"     // an event does not satisfy its schema
	KindUnknown    Kind = "unknown"    // an event of a type or version that this program does not know
	KindTransition Kind = "transition" // a move that a state machine forbids
	KindLink       Kind = "link"       // an event names something that does not exist
	KindCondition  Kind = "condition"  // an event could not follow the ones before it
	KindLayout     Kind = "layout"     // a commit is not in the layout that Skein writes
	KindHeader     Kind = "header"     // a commit's headers are not those that Skein writes
	KindTime       Kind = "time"       // an event claims to be later than the log stored it
	KindTimeline   Kind = "timeline"   // the timeline differs from the log
	KindDocument   Kind = "document"   // a read model differs from the log
	KindWitness    Kind = "witness"    // the log no longer holds what a file of an export shows; see Witness
	KindContent    Kind = "content"    // content that the log names is missing or damaged
	KindSnapshot   Kind = "snapshot"   // a snapshot of a state differs from the fold of the log
	KindArchive    Kind = "archive"    // an archive is missing or damaged, or its record is wrong
)

// Finding is one fault. Which of the fields are set depends on the kind.
type Finding struct {
	Kind   Kind   `json:"kind"`
	Tenant string `json:"tenant,omitzero"`
	Thread string `json:"thread,omitzero"` // or another aggregate: a key's claim, the tenant's own
	Seq    uint64 `json:"seq,omitzero"`    // in the log
	Event  string `json:"event,omitzero"`
	Bucket string `json:"bucket,omitzero"`
	Key    string `json:"key,omitzero"`
	Detail string `json:"detail"`
}

func (f Finding) String() string {
	where := ""
	switch {
	case f.Bucket != "" && f.Seq != 0:
		where = fmt.Sprintf("%s %s, commit %d", f.Bucket, f.Key, f.Seq)
	case f.Bucket != "":
		where = f.Bucket + " " + f.Key
	case f.Thread != "" && f.Seq != 0:
		where = fmt.Sprintf("%s/%s, commit %d", f.Tenant, f.Thread, f.Seq)
	case f.Thread != "":
		where = f.Tenant + "/" + f.Thread
	case f.Seq != 0:
		where = fmt.Sprintf("commit %d", f.Seq)
	default:
		where = "the log"
	}
	return fmt.Sprintf("%s: %s: %s", f.Kind, where, f.Detail)
}

// Summary counts what was checked.
type Summary struct {
	Threads   int    `json:"threads"`
	Others    int    `json:"others"` // keys' claims and tenants' own aggregates
	Commits   int    `json:"commits"`
	Events    int    `json:"events"`
	Timeline  int    `json:"timelineEvents"`
	Documents int    `json:"documents"`
	Contents  int    `json:"contents"` // of files
	Findings  int    `json:"findings"`
	LastSeq   uint64 `json:"lastSeq"` // the last sequence read
}

// The stages of a verification, and of reading a file.
const (
	StageLog       = "log"
	StageTimeline  = "timeline"
	StageDocuments = "documents"
	StageCheck     = "check"
	StageWrite     = "write"
	StageWitness   = "witness"
)

// Progress is the progress of a verification, an export or an import.
type Progress struct {
	Stage    string // one of the stages; empty for an export
	Done, Of int64  // threads of the log, sequences of the timeline, bytes of a file; Of is 0 if the end is unknown
	Commits  int    // that were read
}

// damaged turns what could not be read into a finding, and the audit continues. It returns an
// error that says nothing about what is stored: the check was cancelled, or the server does
// not respond.
func (v *verifier) damaged(ctx context.Context, err error, place Finding) error {
	if unanswered(ctx, err) {
		return err
	}
	place.Detail = fmt.Sprintf("it cannot be read: %v", err)
	v.find(place)
	return nil
}

// unanswered reports whether an error is the lack of a response rather than a fault of what is
// stored.
func unanswered(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
		return false
	}
	for _, silent := range []error{
		context.Canceled, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed,
		nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrNoServers, nats.ErrStaleConnection,
	} {
		if errors.Is(err, silent) {
			return true
		}
	}
	return false
}

// hasStream reports whether a stream exists. A read of a missing one fails like one without
// responders.
func (v *verifier) hasStream(ctx context.Context, name string) (bool, error) {
	_, err := v.log.JetStream().Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}
