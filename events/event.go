package events

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is one thing that happened to an aggregate (a thread, a key's claim or the tenant). On
// the wire it is a CloudEvent 1.0 in structured JSON. Attributes that can be derived (source,
// dataschema, datacontenttype) are not fields.
type Event struct {
	ID        string // a UUIDv5 of the command's id and the event's index in it
	Type      Type
	Time      Time   // when the command was accepted; never before that of the previous event
	Subject   string // the entity's id; for the thread's own events the thread's id
	Tenant    string
	ThreadID  string // the aggregate, which is a thread except for keys and the tenant
	Version   int64  // the thread's version with this event: its place in the thread, from 1
	CommandID string
	// CommandDigest is the digest of the command's name and data, which tells a repeat from another
	// command with the same id. Only the first event of a command has it, and only if the caller
	// set the command's id.
	CommandDigest string
	CommandIndex  int    // index, from 1, in thread.commit's list of the command that made it; 0: not of a list
	Correlation   string // the execution that it belongs to
	Causation     string // the id of the event that caused it
	Actor         string // who sent the command
	TraceParent   string // W3C trace context
	Data          any    // one of the catalog's structs, by value, or Unknown

	schema string // of the data as it was decoded
	raw    []byte // the bytes that it was decoded from, complete
	stored []byte // its bytes in its commit's body, where they differ
	shared string // the attribute of these bytes that names values of other events
}

// Raw returns the bytes that the event was decoded from, nil for a new event. An event that
// refers to parts of its commit is complete in them, as it is on the timeline.
func (e *Event) Raw() []byte { return e.raw }

// Schema returns the attribute dataschema: the schema of the decoded version, or of the catalog for
// a new event.
func (e *Event) Schema() string {
	if e.raw != nil {
		return e.schema
	}
	if r, ok := rows[e.Type]; ok {
		return r.Schema()
	}
	return ""
}

// Append appends the event to b as a CloudEvent in its canonical bytes. If the event cannot be
// encoded, the error names it and b is returned unchanged.
func (e *Event) Append(b []byte) ([]byte, error) {
	out, err := e.appendData(e.appendEnvelope(b))
	if err != nil {
		return b, fmt.Errorf("event %s: %w", e.Type, err)
	}
	return append(out, '}'), nil
}

// appendEnvelope writes everything before the data's value. The scanner reads exactly this
// layout: change both together.
func (e *Event) appendEnvelope(b []byte) []byte {
	var schema string // of the current data: an old version was upcast
	if u, ok := e.Data.(Unknown); ok {
		schema = u.Schema
	} else if r, ok := rows[e.Type]; ok {
		schema = r.schema
	}
	b = append(b, `{"specversion":"1.0","id":`...)
	b = appendQuote(b, e.ID)
	if plain(e.Tenant) && plain(e.ThreadID) {
		b = append(b, `,"source":"/`...)
		b = append(b, e.Tenant...)
		b = append(b, threadsPath...)
		b = append(b, e.ThreadID...)
		b = append(b, '"')
	} else {
		b = appendText(b, "source", "/"+e.Tenant+threadsPath+e.ThreadID)
	}
	b = append(b, `,"type":`...)
	b = appendQuote(b, e.Type)
	b = append(b, `,"time":"`...)
	b = e.Time.append(b, 6)
	b = append(b, '"')
	b = appendText(b, "subject", e.Subject)
	b = append(b, `,"datacontenttype":"application/json"`...)
	b = appendText(b, "dataschema", schema)
	b = append(b, `,"tenant":`...)
	b = appendQuote(b, e.Tenant)
	b = append(b, `,"threadid":`...)
	b = appendQuote(b, e.ThreadID)
	b = append(b, `,"threadversion":`...)
	b = strconv.AppendInt(b, e.Version, 10)
	b = appendText(b, "commandid", e.CommandID)
	b = appendText(b, "commanddigest", e.CommandDigest)
	if e.CommandIndex != 0 {
		b = append(b, `,"commandindex":`...)
		b = strconv.AppendInt(b, int64(e.CommandIndex), 10)
	}
	b = appendText(b, "correlationid", e.Correlation)
	b = appendText(b, "causationid", e.Causation)
	b = appendText(b, "actor", e.Actor)
	return appendText(b, "traceparent", e.TraceParent)
}

// appendData writes the attribute data. Unknown data keeps its bytes, and stays absent if it
// was.
func (e *Event) appendData(b []byte) ([]byte, error) {
	if u, ok := e.Data.(Unknown); ok {
		switch {
		case u.Raw == nil:
			return b, nil
		case !jsontext.Value(u.Raw).IsValid():
			return b, errors.New("data is not JSON")
		}
		return append(append(b, dataName...), u.Raw...), nil
	}
	b = append(b, dataName...)
	if r, ok := rows[e.Type]; ok && r.plan != nil {
		return r.plan.Append(b, e.Data)
	}
	raw, err := json.Marshal(e.Data, json.Deterministic(true))
	return append(b, raw...), err
}

const (
	threadsPath = "/threads/"
	dataName    = `,"data":`
)

// appendText writes an attribute, unless it is empty.
func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return appendQuote(b, value)
}

// appendQuote writes a JSON string. Few need escapes.
func appendQuote[S ~string](b []byte, s S) []byte {
	if !plain(s) {
		b, _ = jsontext.AppendQuote(b, s) // invalid UTF-8 was replaced; requests cannot hold it
		return b
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plain reports whether s is ASCII that needs no escapes in JSON.
func plain[S ~string](s S) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// wireEvent is the envelope as JSON.
type wireEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            Type   `json:"type"`
	Time            string `json:"time"`
	Subject         string `json:"subject"`
	DataContentType string `json:"datacontenttype"`
	DataSchema      string `json:"dataschema"`
	Tenant          string `json:"tenant"`
	ThreadID        string `json:"threadid"`
	ThreadVersion   int64  `json:"threadversion"`
	CommandID       string `json:"commandid"`
	CommandDigest   string `json:"commanddigest"`
	CommandIndex    int    `json:"commandindex"`
	CorrelationID   string `json:"correlationid"`
	CausationID     string `json:"causationid"`
	Actor           string `json:"actor"`
	TraceParent     string `json:"traceparent"`
	Data            JSON   `json:"data"`
}

// errEnvelope is wrapped by every error of a malformed envelope.
var errEnvelope = errors.New("not an event of Skein")

// DecodeEvent decodes a CloudEvent in structured JSON. The event refers to raw's bytes rather
// than copying them. Data of an unknown type or version becomes Unknown; a malformed envelope,
// or malformed data of a known type, is an error.
func DecodeEvent(raw []byte) (Event, error) {
	var e Event
	if s := (scanner{b: raw, last: &Event{}}); s.event(&e) && s.at == len(raw) {
		return e, nil
	}
	return decodeEvent(raw)
}

// decodeEvent decodes an event in any layout that JSON allows, including those that the
// scanner does not accept.
func decodeEvent(raw []byte) (Event, error) {
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		return Event{}, fmt.Errorf("%w: %w", errEnvelope, err)
	}
	return w.event(raw)
}

func (w *wireEvent) event(raw []byte) (Event, error) {
	at, err := ParseTime(w.Time)
	switch {
	case w.SpecVersion != "1.0":
		return Event{}, fmt.Errorf("%w: specversion %q", errEnvelope, clip(w.SpecVersion))
	case w.ID == "" || w.Type == "":
		return Event{}, fmt.Errorf("%w: id or type is missing", errEnvelope)
	case err != nil:
		return Event{}, fmt.Errorf("%w: %w", errEnvelope, err)
	case w.ThreadVersion < 1:
		return Event{}, fmt.Errorf("%w: threadversion %d", errEnvelope, w.ThreadVersion)
	case w.CommandIndex < 0 || w.CommandIndex > MaxCommands:
		return Event{}, fmt.Errorf("%w: commandindex %d", errEnvelope, w.CommandIndex)
	case w.Source != "/"+w.Tenant+threadsPath+w.ThreadID:
		return Event{}, fmt.Errorf("%w: source %q does not match tenant and threadid", errEnvelope, clip(w.Source))
	}
	data, err := decodeData(w.Type, w.DataSchema, w.Data)
	if err != nil {
		return Event{}, fmt.Errorf("event %s %s: %w", w.Type, w.ID, err)
	}
	return Event{
		ID: w.ID, Type: w.Type, Time: at, Subject: w.Subject, Tenant: w.Tenant, ThreadID: w.ThreadID,
		Version: w.ThreadVersion, CommandID: w.CommandID, CommandDigest: w.CommandDigest, CommandIndex: w.CommandIndex,
		Correlation: w.CorrelationID, Causation: w.CausationID, Actor: w.Actor, TraceParent: w.TraceParent,
		Data: data, schema: w.DataSchema, raw: raw,
	}, nil
}
