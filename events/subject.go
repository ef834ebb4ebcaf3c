package events

import (
	"fmt"
	"slices"
	"strings"
)

// Headers of messages of the log and the timeline.
const (
	HeaderChain   = "Skein-Chain"   // commit: hex of the chain with this commit
	HeaderVersion = "Skein-Version" // commit: the thread's version after it
	HeaderSeq     = "Skein-Seq"     // timeline: the commit's sequence in the log
	HeaderType    = "Content-Type"

	HeaderTraceParent = "traceparent"   // command: the W3C trace context that its events record
	HeaderWait        = "Skein-Wait-Ms" // query, file: how many milliseconds the sender waits for the reply

	HeaderReply = "Skein-Reply" // command, forwarded from one Skein to another: its caller's reply subject

	HeaderErrorCode = "Nats-Service-Error-Code" // reply: the refusal's number
	HeaderError     = "Nats-Service-Error"      // reply: the refusal's code

	HeaderPiece  = "Skein-Piece"  // upload: the piece's number, from 0; in the end message the number of pieces
	HeaderUpload = "Skein-Upload" // upload: end, wait or abort; absent on pieces
	UploadEnd    = "end"
	UploadWait   = "wait" // more will come
	UploadAbort  = "abort"

	BatchContentType = "application/cloudevents-batch+json"
	EventContentType = "application/cloudevents+json"
)

// Limits, in bytes.
const (
	MaxEventBytes  = 512 << 10          // of one event's data; bigger content belongs in files
	MaxStateBytes  = 1 << 20            // of a context's content; a larger one is refused, not truncated
	MaxMergeBytes  = 1<<20 + 64<<10     // of the data of a state.merge or a context.set, which may hold a whole state
	MaxPayload     = 4 << 20            // of a message, as nats.conf sets it
	MaxCommitBytes = MaxPayload - 8<<10 // of a commit's body, which leaves room for its headers
	MaxCommands    = 200                // of one thread.commit
)

// DefaultPrefix is the first token of every subject and the start of every
// stream's name, unless another is configured.
const DefaultPrefix = "skein"

// WorkerQueue is the queue group, whatever the prefix, in which processes that serve reactors,
// tools and effects subscribe: each call goes to one of them. A worker's credentials allow
// only this queue group.
const WorkerQueue = "skein"

// Names builds and parses the names of subjects, streams and buckets. Two installations on one
// server have two prefixes.
type Names struct{ Prefix string }

// DefaultNames returns the names with the default prefix.
func DefaultNames() Names { return Names{DefaultPrefix} }

// Validate returns an error unless the prefix is 1 to 32 lower-case letters and digits.
func (n Names) Validate() error {
	ok := len(n.Prefix) >= 1 && len(n.Prefix) <= 32
	for _, c := range n.Prefix {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	if !ok {
		return fmt.Errorf("prefix %q: 1 to 32 lower-case letters and digits are allowed", clip(n.Prefix))
	}
	return nil
}

// Stream returns a stream's name, such as SKEIN_LOG.
func (n Names) Stream(name string) string { return strings.ToUpper(n.Prefix) + "_" + name }

// Bucket returns a bucket's name: unchanged with the default prefix, otherwise after the
// prefix.
func (n Names) Bucket(name string) string {
	if n.Prefix == DefaultPrefix {
		return name
	}
	return n.Prefix + "_" + name
}

// Log returns the subject of an aggregate's commits: skein.log.{tenant}.{thread}.
func (n Names) Log(tenant, aggregate string) string {
	return n.Prefix + ".log." + tenant + "." + aggregate
}

// ParseLog parses a subject of the log.
func (n Names) ParseLog(subject string) (tenant, aggregate string, ok bool) {
	rest, ok := strings.CutPrefix(subject, n.Prefix+".log.")
	if !ok {
		return "", "", false
	}
	tenant, aggregate, ok = strings.Cut(rest, ".")
	return tenant, aggregate, ok && tenant != "" && aggregate != "" && !strings.Contains(aggregate, ".")
}

// Timeline returns the subject of an event on its thread's timeline:
// skein.timeline.{tenant}.{thread}.{event}.
func (n Names) Timeline(tenant, thread string, t Type) string {
	return n.Prefix + ".timeline." + tenant + "." + thread + "." + string(t)
}

// ParseTimeline parses a subject of the timeline.
func (n Names) ParseTimeline(subject string) (tenant, thread string, t Type, ok bool) {
	rest, ok := strings.CutPrefix(subject, n.Prefix+".timeline.")
	if !ok {
		return "", "", "", false
	}
	parts := strings.SplitN(rest, ".", 3)
	if len(parts) != 3 || slices.Contains(parts, "") {
		return "", "", "", false
	}
	return parts[0], parts[1], Type(parts[2]), true
}

// Chunk returns the subject of an execution's chunks:
// skein.chunk.{tenant}.{thread}.{execution}. The server republishes what is stored there on
// the thread's timeline, as chunk.emitted.
func (n Names) Chunk(tenant, thread, execution string) string {
	return n.Prefix + ".chunk." + tenant + "." + thread + "." + execution
}

// Command returns the subject of a command: skein.cmd.{tenant}.{noun}.{verb}.
func (n Names) Command(tenant, command string) string {
	return n.Request(KindCommand, tenant, command)
}

// Submit returns the subject of a submitted command: skein.submit.{tenant}.{noun}.{verb}.
func (n Names) Submit(tenant, command string) string {
	return n.Prefix + ".submit." + tenant + "." + command
}

// Run returns the subject of an execution's message in the queue of runs:
// skein.run.{tenant}.{execution}.
func (n Names) Run(tenant, execution string) string {
	return n.Prefix + ".run." + tenant + "." + execution
}

// ParseRun parses a subject of the queue of runs.
func (n Names) ParseRun(subject string) (tenant, execution string, ok bool) {
	rest, ok := strings.CutPrefix(subject, n.Prefix+".run.")
	if !ok {
		return "", "", false
	}
	tenant, execution, ok = strings.Cut(rest, ".")
	return tenant, execution, ok && ValidTenant(tenant) && ValidID(execution)
}

// Usage returns the subject of the counter of a tenant's tokens on a day:
// skein.usage.{tenant}.{day}.
func (n Names) Usage(tenant, day string) string {
	return n.Prefix + ".usage." + tenant + "." + day
}

// Query returns the subject of a query: skein.query.{tenant}.{noun}.{verb}.
func (n Names) Query(tenant, query string) string {
	return n.Request(KindQuery, tenant, query)
}

// Reactor returns the subject on which processes serve the reactor: skein.reactor.{name}. The
// error is an invalid_request if the name is not 1 to 64 of A-Z a-z 0-9 _ -.
func (n Names) Reactor(name string) (string, error) { return n.worker("reactor", name) }

// Tool returns the subject on which processes serve the tool: skein.tool.{name}. The error is
// as Reactor's.
func (n Names) Tool(name string) (string, error) { return n.worker("tool", name) }

// GoTool returns the subject to which the processes subscribe that have the Go tool:
// skein.go_tool.{name}. Nothing is sent there: the subscriptions say who has it. The error is as
// Reactor's.
func (n Names) GoTool(name string) (string, error) { return n.worker("go_tool", name) }

// Effect returns the subject on which processes run the effect: skein.effect.{name}. The error
// is as Reactor's.
func (n Names) Effect(name string) (string, error) { return n.worker("effect", name) }

// Cancel returns the subject on which a process learns that a call was cancelled:
// skein.cancel.{call}. It is not an inbox, so that a process can be allowed to subscribe to it
// without seeing the replies to others.
func (n Names) Cancel(call string) string { return n.Prefix + ".cancel." + call }

func (n Names) worker(kind, name string) (string, error) {
	ok := len(name) >= 1 && len(name) <= 64
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return "", Invalid("/name", "the name of a %s has 1 to 64 of A-Z a-z 0-9 _ -; %q has not", kind, clip(name))
	}
	return n.Prefix + "." + kind + "." + name, nil
}

// File returns the subject of a request for the bytes of files:
// skein.file.{tenant}.content.{put or get}.
func (n Names) File(tenant, request string) string {
	return n.Request(KindFile, tenant, request)
}

// Upload returns the subject for the pieces of an upload.
func (n Names) Upload(tenant, id string) string { return n.Prefix + ".upload." + tenant + "." + id }

// Answerable reports whether Skein may reply to this subject. A reply must never be mistaken
// for an event, a request or an acknowledgement, so Skein's own subjects and the server's are
// refused. An empty reply subject, of a request that needs no reply, is allowed.
func (n Names) Answerable(reply string) bool {
	return !strings.HasPrefix(reply, "$") && !strings.HasPrefix(reply, n.Prefix+".") && reply != n.Prefix
}

// GatewayKeys returns the subject on which gateways ask for API keys of a tenant, or, if
// tenant is empty, of every tenant.
func (n Names) GatewayKeys(tenant string) string {
	if tenant == "" {
		return n.Prefix + ".gateway.keys"
	}
	return n.Prefix + ".gateway.keys." + tenant
}

// Emit returns the subject on which a gateway asks Skein to emit a live event; see Live.
func (n Names) Emit(tenant, thread, event string) string {
	return n.Prefix + ".emit." + tenant + "." + thread + "." + event
}

// SessionsBucket is the bucket of the tickets and sessions of the HTTP edge, without its prefix.
const SessionsBucket = "sessions"

// Session returns the key of a ticket or a session, as a subject. A realm is the edges that accept
// each other's.
func (n Names) Session(realm, kind, tenant, number string) string {
	return "$KV." + n.Bucket(SessionsBucket) + "." + realm + "." + kind + "." + tenant + "." + number
}

// SessionGet returns the subject on which the server answers with what a key of [Names.Session] has.
func (n Names) SessionGet(key string) string {
	return "$JS.API.DIRECT.GET.KV_" + n.Bucket(SessionsBucket) + "." + key
}

// OperationReport returns the subject on which operators' programs report what they did:
// skein.operation.report. It has no tenant: what they do is done to all that is stored.
func (n Names) OperationReport() string { return n.Prefix + ".operation.report" }

// OperationList returns the subject on which they are asked for.
func (n Names) OperationList() string { return n.Prefix + ".operation.list" }

// Peers returns the subject on which the Skeins that share a log announce themselves to each
// other.
func (n Names) Peers() string { return n.Prefix + ".peers" }

// Peer returns the start of the subjects on which a Skein takes commands that others forward:
// skein.peer.{id}.cmd.{tenant}.{noun}.{verb}.
func (n Names) Peer(id string) string { return n.Prefix + ".peer." + id }

// The kinds of requests that Skein answers.
const (
	KindCommand = "cmd"
	KindQuery   = "query"
	KindFile    = "file" // for the bytes of files
)

// Request returns the subject of a request of a kind: skein.{kind}.{tenant}.{noun}.{verb}. It is the
// inverse of ParseRequest.
func (n Names) Request(kind, tenant, name string) string {
	return n.Prefix + "." + kind + "." + tenant + "." + name
}

// ParseRequest parses the subject of a command, a submitted command or a query. The tenant is
// not validated.
func (n Names) ParseRequest(subject string) (kind, tenant, name string, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != n.Prefix || slices.Contains(parts, "") {
		return "", "", "", false
	}
	return parts[1], parts[2], parts[3] + "." + parts[4], true
}

// Timer returns the subject of a timer: skein.timer.{tenant}.{thread}.{id}.
func (n Names) Timer(tenant, thread, id string) string {
	return n.Prefix + ".timer." + tenant + "." + thread + "." + id
}

// Due returns the subject on which a timer fires: skein.due.{tenant}.{thread}.{id}.
func (n Names) Due(tenant, thread, id string) string {
	return n.Prefix + ".due." + tenant + "." + thread + "." + id
}

// ParseTimer parses the subject of a timer, or that on which it fires.
func (n Names) ParseTimer(subject string) (tenant, thread, id string, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != n.Prefix || parts[1] != "timer" && parts[1] != "due" || slices.Contains(parts, "") {
		return "", "", "", false
	}
	return parts[2], parts[3], parts[4], true
}
