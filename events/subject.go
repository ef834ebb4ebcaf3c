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

	HeaderWait = "Skein-Wait-Ms" // query, file: for how many milliseconds the sender waits for the answer

	HeaderErrorCode = "Nats-Service-Error-Code" // reply: the refusal's number
	HeaderError     = "Nats-Service-Error"      // reply: the refusal's code

	HeaderPiece  = "Skein-Piece"  // upload: the piece's number, from 0; of the end, how many there were
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
	MaxStateBytes  = 1 << 20            // of a context's content; more is refused whole, and not truncated (C-16)
	MaxPayload     = 4 << 20            // of a message, as nats.conf sets it
	MaxCommitBytes = MaxPayload - 8<<10 // of a commit's body, which leaves room for its headers
	MaxCommands    = 200                // of one thread.commit
)

// DefaultPrefix is the first token of every subject and the start of every
// stream's name, unless another is configured.
const DefaultPrefix = "skein"

// WorkerQueue is the queue group in which the processes that serve reactors, tools and
// effects subscribe, whatever the prefix: each call goes to one of them, and a worker's
// credentials allow it this queue group alone.
const WorkerQueue = "skein"

// Names builds and takes apart the names of subjects, streams and buckets. Two
// installations on one server have two prefixes.
type Names struct{ Prefix string }

// DefaultNames are those with the default prefix.
func DefaultNames() Names { return Names{DefaultPrefix} }

// Validate says whether the prefix can start the names: 1 to 32 lower-case
// letters and digits.
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

// Stream gives a stream's name: SKEIN_LOG and so on.
func (n Names) Stream(name string) string { return strings.ToUpper(n.Prefix) + "_" + name }

// Bucket gives a bucket's name: as it is with the default prefix, else with
// the prefix before it.
func (n Names) Bucket(name string) string {
	if n.Prefix == DefaultPrefix {
		return name
	}
	return n.Prefix + "_" + name
}

// Log gives the subject of an aggregate's commits: skein.log.{tenant}.{thread}.
func (n Names) Log(tenant, aggregate string) string {
	return n.Prefix + ".log." + tenant + "." + aggregate
}

// ParseLog takes a subject of the log apart.
func (n Names) ParseLog(subject string) (tenant, aggregate string, ok bool) {
	rest, ok := strings.CutPrefix(subject, n.Prefix+".log.")
	if !ok {
		return "", "", false
	}
	tenant, aggregate, ok = strings.Cut(rest, ".")
	return tenant, aggregate, ok && tenant != "" && aggregate != "" && !strings.Contains(aggregate, ".")
}

// Timeline gives the subject of an event on its thread's timeline:
// skein.timeline.{tenant}.{thread}.{event}.
func (n Names) Timeline(tenant, thread string, t Type) string {
	return n.Prefix + ".timeline." + tenant + "." + thread + "." + string(t)
}

// ParseTimeline takes a subject of the timeline apart.
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

// Chunk gives the subject of an execution's chunks:
// skein.chunk.{tenant}.{thread}.{execution}. The server republishes what is
// stored there on the thread's timeline, as chunk.emitted.
func (n Names) Chunk(tenant, thread, execution string) string {
	return n.Prefix + ".chunk." + tenant + "." + thread + "." + execution
}

// Command gives the subject of a command: skein.cmd.{tenant}.{noun}.{verb}.
func (n Names) Command(tenant, command string) string {
	return n.Prefix + ".cmd." + tenant + "." + command
}

// Submit gives the subject of a stored command: skein.submit.{tenant}.{noun}.{verb}.
func (n Names) Submit(tenant, command string) string {
	return n.Prefix + ".submit." + tenant + "." + command
}

// Run gives the subject of an execution's message in the queue of runs:
// skein.run.{tenant}.{execution}.
func (n Names) Run(tenant, execution string) string {
	return n.Prefix + ".run." + tenant + "." + execution
}

// ParseRun takes a subject of the queue of runs apart.
func (n Names) ParseRun(subject string) (tenant, execution string, ok bool) {
	rest, ok := strings.CutPrefix(subject, n.Prefix+".run.")
	if !ok {
		return "", "", false
	}
	tenant, execution, ok = strings.Cut(rest, ".")
	return tenant, execution, ok && ValidTenant(tenant) && ValidID(execution)
}

// Usage returns the subject on which the tokens are counted that a tenant uses on a
// day: skein.usage.{tenant}.{day}.
func (n Names) Usage(tenant, day string) string {
	return n.Prefix + ".usage." + tenant + "." + day
}

// Query gives the subject of a query: skein.query.{tenant}.{noun}.{verb}.
func (n Names) Query(tenant, query string) string {
	return n.Prefix + ".query." + tenant + "." + query
}

// Reactor gives the subject on which processes that are the reactor answer:
// skein.reactor.{name}. The error is an invalid_request: the name is not 1 to 64
// of A-Z a-z 0-9 _ -.
func (n Names) Reactor(name string) (string, error) { return n.worker("reactor", name) }

// Tool gives the subject on which processes that are the tool answer:
// skein.tool.{name}. The error is as Reactor's.
func (n Names) Tool(name string) (string, error) { return n.worker("tool", name) }

// Effect gives the subject on which processes that run the effect answer:
// skein.effect.{name}. The error is as Reactor's.
func (n Names) Effect(name string) (string, error) { return n.worker("effect", name) }

// Cancel gives the subject on which a process is told that a call is no longer
// wanted: skein.cancel.{call}. It is not an inbox, so that a process can be
// allowed to listen to it without seeing the replies to others.
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

// File gives the subject of a request for the bytes of files:
// skein.file.{tenant}.content.{put or get}.
func (n Names) File(tenant, request string) string {
	return n.Prefix + ".file." + tenant + "." + request
}

// Upload gives the subject that takes the pieces of an upload.
func (n Names) Upload(tenant, id string) string { return n.Prefix + ".upload." + tenant + "." + id }

// Answerable reports whether a request that names this reply subject may be
// answered there. An answer must never be taken for an event, a request or an
// acknowledgement: nothing of Skein's, and nothing of the server's, is answered
// to, whoever asks. Empty, for a request that wants no answer, is in order.
func (n Names) Answerable(reply string) bool {
	return !strings.HasPrefix(reply, "$") && !strings.HasPrefix(reply, n.Prefix+".") && reply != n.Prefix
}

// ParseRequest takes the subject of a command, a stored command or a query
// apart. The tenant is as it came: validate it.
func (n Names) ParseRequest(subject string) (kind, tenant, name string, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != n.Prefix || slices.Contains(parts, "") {
		return "", "", "", false
	}
	return parts[1], parts[2], parts[3] + "." + parts[4], true
}
