package openresponses

import (
	"context"

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
	input, err := inputOf(d.Input)
	if err != nil {
		return err
	}
	if _, err := transform.Read(input); err != nil {
		return err
	}
	_, err = d.settings(&echo{})
	return err
}

// Renewing returns a function that puts off the purge of a thread.
func Renewing(c *client.Client, thread, purge string) func(context.Context) {
	t := &temporary{client: c, query: events.GetExecution{ThreadID: thread}, purges: []string{purge}}
	return t.renew
}
