package events

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is one thing that happened to an aggregate (a thread, a key's claim or
// the tenant). On the wire it is a CloudEvent 1.0 in structured JSON; the
// fields that can be derived (source, dataschema, datacontenttype) are not kept
// here.
type Event struct {
	ID           string // a UUIDv5 of the command's id and the event's place in it
	Type         Type
	Time         Time   // when the command was taken; never before that of the event before it
	Subject      string // the entity's id; for the thread's own events the thread's id
	Tenant       string
	ThreadID     string // the aggregate, which is a thread but for keys and the tenant
	Version      int64  // the thread's version with this event: its place in the thread, from 1
	CommandID    string
	CommandIndex int    // the place in thread.commit's list, from 1, of the command that made it; 0: of no list
	Correlation  string // the execution that it belongs to
	Causation    string // the id of the event that caused it
	Actor        string // who asked
	TraceParent  string // W3C trace context
	Data         any    // one of the catalog's structs, by value, or Unknown

	schema string // of the data as it was read
	raw    []byte // the bytes that it was read from, whole
	stored []byte // those of its commit's body, where they differ
}

// Raw gives the bytes that the event was decoded from, nil if it was not. An event
// that names parts of its commit is whole there: it is as the timeline has it.
func (e *Event) Raw() []byte { return e.raw }

// Schema gives what the attribute dataschema holds: of the version that was
// read, or of the catalog's if the event is new.
func (e *Event) Schema() string {
	if e.raw != nil {
		return e.schema
	}
	if r, ok := rows[e.Type]; ok {
		return r.Schema()
	}
	return ""
}

// Append writes the event to b as a CloudEvent. The bytes are canonical. The
// error says which event cannot be written; b is then as it was.
func (e *Event) Append(b []byte) ([]byte, error) {
	out := sink{e.appendEnvelope(b)}
	if err := e.writeData(&out); err != nil {
		return b, fmt.Errorf("event %s: %w", e.Type, err)
	}
	return append(out.b, '}'), nil
}

// sink is bytes that can be written to. Unlike a bytes.Buffer it does not make
// the encoder keep a quarter of it free.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// appendEnvelope writes what stands before the data's value. A scanner reads
// exactly this layout: change both.
func (e *Event) appendEnvelope(b []byte) []byte {
	var schema string // of the data as it is here: an old version was upcast
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
	if e.CommandIndex != 0 {
		b = append(b, `,"commandindex":`...)
		b = strconv.AppendInt(b, int64(e.CommandIndex), 10)
	}
	b = appendText(b, "correlationid", e.Correlation)
	b = appendText(b, "causationid", e.Causation)
	b = appendText(b, "actor", e.Actor)
	return appendText(b, "traceparent", e.TraceParent)
}

// writeData writes the attribute data. What is Unknown keeps its bytes, and
// stays without data if it had none.
func (e *Event) writeData(out *sink) error {
	u, ok := e.Data.(Unknown)
	switch {
	case ok && u.Raw == nil:
		return nil
	case ok && !jsontext.Value(u.Raw).IsValid():
		return errors.New("its data is not JSON")
	}
	out.b = append(out.b, dataName...)
	if ok {
		out.b = append(out.b, u.Raw...)
		return nil
	}
	return json.MarshalWrite(out, e.Data, json.Deterministic(true))
}

const (
	threadsPath = "/threads/"
	dataName    = `,"data":`
)

// appendText writes an attribute that is left out when it is empty.
func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return appendQuote(b, value)
}

// appendQuote writes a JSON string. Nearly all need no escapes.
func appendQuote[S ~string](b []byte, s S) []byte {
	if !plain(s) {
		b, _ = jsontext.AppendQuote(b, s) // bad UTF-8 was replaced; requests cannot hold it
		return b
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plain reports whether s is ASCII that JSON writes as it is.
func plain[S ~string](s S) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// wireEvent is the envelope as JSON has it.
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
	CommandIndex    int    `json:"commandindex"`
	CorrelationID   string `json:"correlationid"`
	CausationID     string `json:"causationid"`
	Actor           string `json:"actor"`
	TraceParent     string `json:"traceparent"`
	Data            JSON   `json:"data"`
}

// errEnvelope is what a broken envelope is, whatever is wrong with it.
var errEnvelope = errors.New("not an event of Skein")

// DecodeEvent reads a CloudEvent in structured JSON. The bytes are kept, not
// copied. An unknown type or version gives Unknown as data; a broken envelope,
// or broken data of a known type, is an error.
func DecodeEvent(raw []byte) (Event, error) {
	var e Event
	if s := (scanner{b: raw, last: &Event{}}); s.event(&e) && s.at == len(raw) {
		return e, nil
	}
	return decodeEvent(raw)
}

// decodeEvent reads an event in any layout that JSON allows. It has the last
// word: what the scanner does not take comes here.
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
		return Event{}, fmt.Errorf("%w: no id or no type", errEnvelope)
	case err != nil:
		return Event{}, fmt.Errorf("%w: %w", errEnvelope, err)
	case w.ThreadVersion < 1:
		return Event{}, fmt.Errorf("%w: threadversion %d", errEnvelope, w.ThreadVersion)
	case w.CommandIndex < 0 || w.CommandIndex > MaxCommands:
		return Event{}, fmt.Errorf("%w: commandindex %d", errEnvelope, w.CommandIndex)
	case w.Source != "/"+w.Tenant+threadsPath+w.ThreadID:
		return Event{}, fmt.Errorf("%w: source %q does not fit tenant and threadid", errEnvelope, clip(w.Source))
	}
	data, err := decodeData(w.Type, w.DataSchema, w.Data)
	if err != nil {
		return Event{}, fmt.Errorf("event %s %s: %w", w.Type, w.ID, err)
	}
	return Event{
		ID: w.ID, Type: w.Type, Time: at, Subject: w.Subject, Tenant: w.Tenant, ThreadID: w.ThreadID,
		Version: w.ThreadVersion, CommandID: w.CommandID, CommandIndex: w.CommandIndex,
		Correlation: w.CorrelationID, Causation: w.CausationID, Actor: w.Actor, TraceParent: w.TraceParent,
		Data: data, schema: w.DataSchema, raw: raw,
	}, nil
}
