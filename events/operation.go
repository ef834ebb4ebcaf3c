package events

import (
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
)

// OperationKind says what was done with everything that Skein stores.
type OperationKind string

// The kinds of operations.
const (
	AuditOperation  OperationKind = "audit"  // skein audit verify
	BackupOperation OperationKind = "backup" // skein backup
)

// Enum lists the kinds.
func (OperationKind) Enum() []string {
	return []string{string(AuditOperation), string(BackupOperation)}
}

// Operation is an action of an operator's program on Skein's store, as the program reports it:
// numbers and times, and nothing that is stored.
type Operation struct {
	Kind       OperationKind    `json:"kind" schema:"required" doc:"An audit verifies what is stored; a backup copies what is not derived."`
	StartedAt  string           `json:"startedAt" schema:"required,pattern=time" doc:"When it began, by the clock of the program."`
	TookMs     int64            `json:"tookMs" schema:"required,minimum=0" doc:"How long it took, in milliseconds."`
	Failed     bool             `json:"failed,omitzero" doc:"It could not be finished, and counts for nothing."`
	Tenant     string           `json:"tenant,omitzero" schema:"pattern=tenant" doc:"The tenant that was verified; absent: all of them."`
	Partial    bool             `json:"partial,omitzero" doc:"Only some threads, or a range of the log, were verified."`
	LogOnly    bool             `json:"logOnly,omitzero" doc:"Only the log was verified."`
	Threads    int64            `json:"threads,omitzero" schema:"minimum=0" doc:"How many threads were verified."`
	Commits    int64            `json:"commits,omitzero" schema:"minimum=0" doc:"How many commits were verified."`
	Events     int64            `json:"events,omitzero" schema:"minimum=0" doc:"How many events were verified."`
	Findings   []OperationFault `json:"findings,omitempty" schema:"maxItems=32" doc:"What an audit found, by kind; absent: nothing."`
	Streams    int64            `json:"streams,omitzero" schema:"minimum=0" doc:"How many streams a backup has."`
	Bytes      int64            `json:"bytes,omitzero" schema:"minimum=0" doc:"The size of a backup, in bytes."`
	RecordedAt string           `json:"recordedAt,omitzero" schema:"pattern=time" doc:"When Skein received it, by its own clock; absent in a report."`
}

// OperationFault counts findings of a kind.
type OperationFault struct {
	Kind  string `json:"kind" schema:"required,maxLength=32" doc:"The kind of the findings, such as chain."`
	Count int64  `json:"count" schema:"required,minimum=1" doc:"How many there were."`
}

// OperationList is the latest operations of each kind.
type OperationList struct {
	Operations []Operation `json:"operations" schema:"required" doc:"The latest of each kind, the last recorded first."`
}

// Bounds of a report of an operation.
const (
	MaxOperationBytes = 4 << 10             // of its JSON
	MaxOperationTime  = 30 * 24 * time.Hour // that an operation may take
	OperationSkew     = 24 * time.Hour      // between its end and the time at which it is reported
	maxOperationCount = 1 << 53             // of anything that is counted
	maxFaultKinds     = 32
)

var faultKind = regexp.MustCompile(`^[a-z]{1,32}$`)

// ParseOperation parses and validates a report that arrived at a time. The error is an
// invalid_request that names the field, or a payload_too_large.
func ParseOperation(body []byte, now time.Time) (Operation, error) {
	if len(body) > MaxOperationBytes {
		return Operation{}, TooLarge("the report", int64(len(body)), MaxOperationBytes)
	}
	var o Operation
	if err := json.Unmarshal(body, &o, json.RejectUnknownMembers(true)); err != nil {
		return Operation{}, Invalid("", "the report is not that of an operation: %w", err)
	}
	if err := o.validate(now); err != nil {
		return Operation{}, err
	}
	return o, nil
}

// validate returns what is wrong with a report that arrives now.
func (o *Operation) validate(now time.Time) error {
	switch {
	case o.Kind != AuditOperation && o.Kind != BackupOperation:
		return Invalid("/kind", "kind is %q; it is audit or backup", clip(string(o.Kind)))
	case o.RecordedAt != "":
		return Invalid("/recordedAt", "recordedAt is set by Skein; leave it out")
	case o.Tenant != "" && !ValidTenant(o.Tenant):
		return CheckTenant("/tenant", o.Tenant)
	case o.Kind == BackupOperation && (o.Tenant != "" || o.Partial || o.LogOnly || o.Threads != 0 || o.Commits != 0 || o.Events != 0 || len(o.Findings) > 0):
		return Invalid("", "a backup is of all tenants, and has only streams and bytes")
	case o.Kind == AuditOperation && (o.Streams != 0 || o.Bytes != 0):
		return Invalid("", "an audit has no streams or bytes: those are of a backup")
	}
	if err := o.validateTimes(now); err != nil {
		return err
	}
	for _, c := range []struct {
		path string
		n    int64
	}{{"/threads", o.Threads}, {"/commits", o.Commits}, {"/events", o.Events}, {"/streams", o.Streams}, {"/bytes", o.Bytes}} {
		if c.n < 0 || c.n > maxOperationCount {
			return Invalid(c.path, "%d is no count", c.n)
		}
	}
	return validateFaults(o.Findings)
}

// validateTimes requires that the operation ended about now.
func (o *Operation) validateTimes(now time.Time) error {
	if o.TookMs < 0 || o.TookMs > MaxOperationTime.Milliseconds() {
		return Invalid("/tookMs", "tookMs is %d; it is at most %d", o.TookMs, MaxOperationTime.Milliseconds())
	}
	started, err := ParseTime(o.StartedAt)
	if err != nil {
		return Invalid("/startedAt", "%w", err)
	}
	ended := started.Go().Add(time.Duration(o.TookMs) * time.Millisecond)
	if apart := now.Sub(ended).Abs(); apart > OperationSkew {
		return Invalid("/startedAt", "the operation ended at %s, and is reported when it ends; check the clock", TimeOf(ended).ISO())
	}
	return nil
}

func validateFaults(list []OperationFault) error {
	if len(list) > maxFaultKinds {
		return Invalid("/findings", "there are %d kinds of findings; at most %d are allowed", len(list), maxFaultKinds)
	}
	seen := map[string]bool{}
	for _, f := range list {
		if !faultKind.MatchString(f.Kind) || seen[f.Kind] {
			return Invalid("/findings", "%q is not the kind of findings, or is there twice", clip(f.Kind))
		}
		if f.Count < 1 || f.Count > maxOperationCount {
			return Invalid("/findings", "%d is no count of findings", f.Count)
		}
		seen[f.Kind] = true
	}
	return nil
}

// Found returns how many findings an audit had.
func (o *Operation) Found() int64 {
	var n int64
	for _, f := range o.Findings {
		n += f.Count
	}
	return n
}

// Whole reports whether the operation was finished, and covered all that all tenants have in the
// log.
func (o *Operation) Whole() bool { return !o.Failed && o.Tenant == "" && !o.Partial }

func operationDocuments() []Document {
	return []Document{
		document[Operation]("operation", "An audit or a backup that an operator's program made."),
		document[OperationList]("operation_list", "The latest operations of each kind."),
	}
}
