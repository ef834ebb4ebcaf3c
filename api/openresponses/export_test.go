package openresponses

import (
	"context"
	"net/http"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// Check decodes a request for a response as far as that needs no server.
func Check(body []byte) error {
	d, err := decodeCreate(body)
	if err != nil {
		return err
	}
	if _, err := transform.Read(d.input); err != nil {
		return err
	}
	_, err = d.settings(&echo{})
	return err
}

// RetryOf returns within which time a request may have been made first, according to its headers.
func RetryOf(h http.Header) time.Duration { return retryOf(&http.Request{Header: h}).within }

// MarkOf returns the mark of a request in the id of its response.
func MarkOf(tenant, subject, digest string) string {
	return string(markOf(&edge.Caller{Principal: edge.Principal{Tenant: tenant, Subject: subject}}, digest))
}

// Renewing returns a function that puts off the purge of a thread.
func Renewing(c *client.Client, thread, purge string) func(context.Context) {
	t := &temporary{client: c, query: events.GetExecution{ThreadID: thread}, purges: []string{purge}}
	return t.renew
}
