package schema

import (
	"github.com/skein-threads/skein/events"
)

// envelope is the CloudEvents envelope of an event, as package events writes it. The schema
// that dataschema names describes data.
type envelope struct {
	SpecVersion     string      `json:"specversion" schema:"required" doc:"The version of CloudEvents."`
	ID              string      `json:"id" schema:"required,minLength=1,maxLength=128" doc:"The event's id, a UUIDv5 of its command and its place in it."`
	Source          string      `json:"source" schema:"required,maxLength=256" doc:"/{tenant}/threads/{thread}"`
	Type            events.Type `json:"type" schema:"required,pattern=name" doc:"What happened: entity.what, in the past tense."`
	Time            string      `json:"time" schema:"required,pattern=time" doc:"When the command was taken, in UTC with microseconds."`
	Subject         string      `json:"subject,omitzero" schema:"minLength=1,maxLength=512" doc:"The id of the entity that it happened to."`
	DataContentType string      `json:"datacontenttype" schema:"required" doc:"What data is."`
	DataSchema      string      `json:"dataschema" schema:"required,minLength=1,maxLength=256" doc:"The name of the schema of data, with its version."`
	Tenant          string      `json:"tenant" schema:"required,pattern=tenant" doc:"The tenant."`
	ThreadID        string      `json:"threadid" schema:"required,minLength=1,maxLength=128" doc:"The aggregate: a thread, a key's claim, or the tenant."`
	ThreadVersion   int64       `json:"threadversion" schema:"required,minimum=1" doc:"The event's place in the thread, from 1: the thread's version with it."`
	CommandID       string      `json:"commandid,omitzero" schema:"pattern=commandId" doc:"The id of the command that made it."`
	CommandDigest   string      `json:"commanddigest,omitzero" schema:"minLength=1,maxLength=64" doc:"The digest of the command's name and data, on the first event of a command whose caller set its id."`
	CommandIndex    int64       `json:"commandindex,omitzero" schema:"minimum=0" doc:"The place in thread.commit's list, from 1, of the command that made it; absent if it stood in none."`
	CorrelationID   string      `json:"correlationid,omitzero" schema:"pattern=id" doc:"The execution that it belongs to."`
	CausationID     string      `json:"causationid,omitzero" schema:"maxLength=128" doc:"The id of the event that caused it."`
	Actor           string      `json:"actor,omitzero" schema:"maxLength=256" doc:"Who asked."`
	TraceParent     string      `json:"traceparent,omitzero" schema:"maxLength=256" doc:"W3C trace context."`
	Data            events.JSON `json:"data" schema:"required" doc:"What the event itself says."`
}

// Constraint returns the values that CloudEvents fixes.
func (envelope) Constraint() string {
	return `{"properties":{` +
		`"specversion":{"const":"1.0"},` +
		`"datacontenttype":{"const":"application/json"},` +
		`"source":{"pattern":"^/[^/]+/threads/[^/]+$"}}}`
}
