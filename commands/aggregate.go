package commands

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// aggregateWithin is how much of a request Aggregate reads: it is called for each request, one
// after another.
const aggregateWithin = 2 << 10

// Aggregate names what a command changes, the same for all commands of a thread or a tenant's
// definitions, so that one process may decide them all: see service.Forwarding. It is empty for
// a thread that the command names itself, and where the first 2 KiB of the request do not
// tell. The request is not validated. A thread's key and its id are two names, and of several
// threads the first counts.
func Aggregate(tenant, name string, body []byte) string {
	row, ok := events.LookupCommand(name)
	if !ok {
		return ""
	}
	switch {
	case row.Unlogged: // nothing of it is in memory
		return ""
	case row.Tenant:
		return tenant
	}
	thread, command := namedIn(body[:min(len(body), aggregateWithin)])
	if thread == "" && command != "" && row.Creates {
		thread = events.DeriveThreadID(tenant, command)
	}
	if thread == "" {
		return ""
	}
	return tenant + "." + thread
}

// namedIn returns the threadId and the commandId of a request.
func namedIn(body []byte) (thread, command string) {
	// What is looked for at the door is not looked for here.
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return "", ""
	}
	for thread == "" {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			break
		}
		member := name.String()
		if member != "threadId" && member != "commandId" {
			if dec.SkipValue() != nil {
				break
			}
			continue
		}
		value, err := dec.ReadToken()
		if err != nil || value.Kind() != '"' {
			break
		}
		if member == "threadId" {
			thread = value.String()
		} else {
			command = value.String()
		}
	}
	return thread, command
}
