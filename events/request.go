package events

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is the body of a command: skein.cmd.{tenant}.{noun}.{verb}.
type Request struct {
	CommandID       string `json:"commandId,omitzero" schema:"pattern=commandId" doc:"Makes a repeat safe: for 24 hours the same id returns the first reply, or already_exists with another command or other data."`
	ThreadID        string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread's id, or key: and its key."`
	WriterToken     string `json:"writerToken,omitzero" schema:"maxLength=128" doc:"The token of writer.claim."`
	ExpectedVersion *int64 `json:"expectedVersion,omitzero" schema:"minimum=0" doc:"The version that the thread must have; 0: it must not exist."`
	Actor           string `json:"actor,omitzero" schema:"maxLength=256" doc:"The actor, for the audit."`
	Data            JSON   `json:"data,omitzero" schema:"object" doc:"What the command takes."`

	Rights *Rights `json:"rights,omitzero" doc:"The rights of the sender, and of the runs and effects that it starts; absent: the whole tenant."`
}

// CommandDigest returns a digest of a command's name and data, 22 characters. Data that differs in
// spaces and in the order of names only has the same digest.
func CommandDigest(name string, data JSON) string {
	canonical := jsontext.Value(slices.Clone(data))
	if len(canonical) == 0 {
		canonical = jsontext.Value("{}")
	}
	_ = canonical.Canonicalize() // what it does not accept no schema does
	h := sha256.New()
	_, _ = io.WriteString(h, name+"\x00")
	_, _ = h.Write(canonical)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// Reply is the body of the reply to a command. It means that the command's events are durable,
// and visible to every read with minSeq = Seq.
type Reply struct {
	ThreadID string     `json:"threadId,omitzero" schema:"pattern=thread" doc:"The thread; absent if the command belongs to the tenant."`
	Version  int64      `json:"version" schema:"required,minimum=0" doc:"The version of the thread, or tenant, after the command."`
	Seq      int64      `json:"seq" schema:"required,minimum=0" doc:"The sequence in the log of its commit or, if it changed nothing, of the one that it found."`
	Time     string     `json:"time,omitzero" schema:"pattern=time" doc:"The time of its events, as documents have it; absent if there are none."`
	Events   []EventRef `json:"events" schema:"required" doc:"The events, in order."`
	Result   *Result    `json:"result,omitzero" doc:"What the command created or found."`
}

// Results returns what each command made, in order: several of a thread.commit, and one otherwise.
func (r *Reply) Results() []Result {
	switch {
	case r.Result == nil:
		return nil
	case len(r.Result.Results) > 0:
		return r.Result.Results
	}
	return []Result{*r.Result}
}

// EventRef names an event of a reply.
type EventRef struct {
	ID      string `json:"id" schema:"required" doc:"The event's id."`
	Type    Type   `json:"type" schema:"required" doc:"Its type."`
	Version int64  `json:"version" schema:"required,minimum=1" doc:"The thread's version with it."`
}

// Result names what a command made. It is derived from the command's events, so that a
// repeated command has the same result.
type Result struct {
	ContextID      string      `json:"contextId,omitzero" doc:"The context that was created or found."`
	ItemID         string      `json:"itemId,omitzero" doc:"The item that was created."`
	ExecutionID    string      `json:"executionId,omitzero" doc:"The execution that was created, or that will answer a message that waits or steers."`
	ReactionItemID string      `json:"reactionItemId,omitzero" doc:"The id allotted to its reaction item."`
	StepID         string      `json:"stepId,omitzero" doc:"The step that was created."`
	Key            string      `json:"key,omitzero" doc:"The part that was put."`
	Queued         string      `json:"queued,omitzero" doc:"The old name of queuedId."`
	QueuedID       string      `json:"queuedId,omitzero" doc:"The id under which it waits."`
	ShareID        string      `json:"shareId,omitzero" doc:"The share that was made."`
	ShareDigest    string      `json:"-"` // of the share's token
	EffectID       string      `json:"effectId,omitzero" doc:"The effect that was scheduled."`
	Cancelled      bool        `json:"cancelled,omitzero" doc:"An effect was cancelled; absent if there was none."`
	Token          string      `json:"token,omitzero" doc:"A secret. Of writer.claim and writer.renew: the writerToken. Of thread.share: opens the thread; a repeat has it only while the process that made it lives."`
	Until          string      `json:"until,omitzero" schema:"pattern=time" doc:"Of writer.claim and writer.renew: when the hold ends."`
	Deleted        int64       `json:"deleted,omitzero" doc:"Of kv.delete: how many keys it deleted."`
	File           *FileRecord `json:"file,omitzero" doc:"The file or directory that was written."`
	Life           int64       `json:"life,omitzero" doc:"Of a key-value state: its life."`
	Size           *int64      `json:"size,omitzero" doc:"Of a key-value state: the number of its keys."`
	SessionID      string      `json:"sessionId,omitzero" doc:"The session that was started or completed."`
	ChildID        string      `json:"childId,omitzero" doc:"The new thread of a fork or handoff, which may wait for its summary."`
	Results        []Result    `json:"results,omitempty" doc:"Of thread.commit: the result of each of its commands."`

	Definitions []DefinitionChange `json:"definitions,omitempty" doc:"Of definition.apply: what it changed, or, as a dry run, would change."`
}

// ReplyWithout returns the reply to a command that wrote nothing: a dry run, which lists the
// events in would, or a command with nothing to do. Version and sequence are those that it
// found.
func ReplyWithout(aggregate string, version int64, seq int64, would []Event) *Reply {
	r := &Reply{ThreadID: threadOf(aggregate), Version: version, Seq: seq, Events: []EventRef{}}
	var own Result
	for i := range would {
		own.add(&Commit{}, &would[i])
	}
	if !own.empty() {
		r.Result = &own
	}
	return r
}

// threadOf returns the aggregate if it is a thread, else "".
func threadOf(aggregate string) string {
	if !IsThread(aggregate) {
		return ""
	}
	return aggregate
}

// ReplyOf returns the reply to the command with that id, from the commit that holds its
// events.
func ReplyOf(c *Commit, commandID string) *Reply {
	own, count, last, at := Result{}, 0, 0, Time(0)
	for i := range c.Events {
		if e := &c.Events[i]; e.CommandID == commandID {
			count, last, at = count+1, max(last, e.CommandIndex), e.Time
		}
	}
	r := &Reply{ThreadID: threadOf(c.Thread), Seq: int64(c.Seq), Events: make([]EventRef, 0, count)}
	results := make([]Result, 0, last) // of the commands of a thread.commit
	for i := range c.Events {
		e := &c.Events[i]
		if e.CommandID != commandID {
			continue
		}
		r.Events = append(r.Events, EventRef{ID: e.ID, Type: e.Type, Version: e.Version})
		r.Version = e.Version
		if e.CommandIndex == 0 {
			own.add(c, e)
			continue
		}
		for len(results) < e.CommandIndex {
			results = append(results, Result{})
		}
		results[e.CommandIndex-1].add(c, e)
	}
	if len(r.Events) > 0 {
		r.Time = at.ISO()
	}
	switch {
	case len(results) > 0:
		r.Result = &Result{Results: results}
	case !own.empty():
		r.Result = &own
	}
	return r
}

func (r *Result) empty() bool {
	return r.ContextID == "" && r.ItemID == "" && r.ExecutionID == "" && r.StepID == "" && r.Key == "" && r.QueuedID == "" &&
		r.EffectID == "" && r.ShareID == "" && r.SessionID == "" && r.ChildID == "" && !r.Cancelled && len(r.Definitions) == 0 && r.File == nil && r.Until == "" && r.Life == 0
}

func (r *Result) add(c *Commit, e *Event) {
	switch d := e.Data.(type) {
	case ContextCreated:
		r.ContextID = d.ID
	case ContextResolved:
		r.ContextID = e.Subject
	case StateChanged:
		if d.Life > 0 {
			r.Life, r.Size = d.Life, &d.Size
		}
	case StateRenewed:
		r.Life = d.Life
	case SessionStarted:
		r.SessionID = d.ID
	case SessionCompleted:
		if d.Outcome != SessionUnknown { // else it made room for another
			r.SessionID = d.ID
		}
	case LifecycleDestroyed:
		r.Life = d.Life
	case ItemCreated:
		if d.CallOf == nil || r.ItemID == "" { // a message is named in preference to its calls
			r.ItemID = d.ID
		}
		if d.ReactionItemID != "" { // it steers a run, which answers it
			r.ExecutionID, r.ReactionItemID = e.Correlation, d.ReactionItemID
		}
	case ExecutionCreated:
		if r.ExecutionID == "" { // else it is one that waited longer than the command's own
			r.ExecutionID, r.ReactionItemID = d.ID, d.ReactionItemID
		}
	case StepCreated:
		r.StepID = d.ID
	case PartCreated:
		r.Key = d.Key
	case PartUpdated:
		r.Key = d.Key
	case QueuePushed:
		r.Queued, r.QueuedID = d.ID, d.ID
		if d.ExecutionID != "" {
			r.ExecutionID, r.ReactionItemID = d.ExecutionID, d.ReactionItemID
		}
	case QueueDrained:
		if r.ExecutionID != "" && slices.Contains(d.IDs, r.QueuedID) { // it was a message, and no longer waits
			r.Queued, r.QueuedID = "", ""
		}
	case ShareCreated:
		r.ShareID, r.ShareDigest = d.ID, d.Digest
	case EffectScheduled:
		r.EffectID = d.ID
	case EffectCancelled:
		r.Cancelled = true
	case WriterClaimed:
		r.Until = d.Until
	case WriterRenewed:
		r.Until = d.Until
	case RelationshipAdded:
		if d.Role == ParentRole && d.Type != MentionRelation {
			r.ChildID = d.ThreadID
		}
	case RunRequested:
		if d.Handoff != nil {
			r.ChildID = d.Handoff.ThreadID
		}
	case DefinitionChanged:
		r.Definitions = append(r.Definitions, d.Change())
	case FileWritten:
		r.file(c, e, d.Record(e.ThreadID, e.Time))
	case DirectoryCreated: // parents come first
		r.file(c, e, d.Record(e.ThreadID, e.Time))
	}
}

// file records a file with the version of its own event: other commands of the commit may have
// written the same path.
func (r *Result) file(c *Commit, e *Event, made FileRecord) {
	made.Stamp = Stamp{Version: e.Version, Seq: int64(c.Seq)}
	r.File = &made
}
