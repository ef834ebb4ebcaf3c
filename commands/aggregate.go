package commands

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// aggregateWithin is how many bytes of a request Aggregate reads. It must be fast, because
// requests wait for it one after another.
const aggregateWithin = 2 << 10

// Aggregate returns a name for what a command changes. Commands on the same thread, or on a
// tenant's definitions, have the same name, so one process can decide them all: see
// service.Forwarding. It returns "" if the first 2 KiB of the request contain no thread and, for a
// command that creates one, no commandId either. The request is not validated. A thread's key and
// its id are different names; of several threads the first counts.
func Aggregate(tenant, name string, body []byte) string {
	row, ok := events.LookupCommand(name)
	if !ok {
		return ""
	}
	switch {
	case row.Unlogged: // these commands change nothing that is cached
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
	// admit checks for duplicate names and invalid UTF-8.
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
