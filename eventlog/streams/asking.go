package streams

import (
	"context"
	"fmt"
	"time"
)

// countingAtMost is how long a server may take to count, unless [Config.Patience] says.
const countingAtMost = 5 * time.Minute

// Ask makes a request whose answer may take the server long, because it has to count all
// subjects of a stream first: that it has not answered yet says nothing. The request is
// repeated, each time with twice the time of the one before, so that one that was lost costs
// only [ReadTimeout]. It must therefore be one that can be repeated. The error of a server that
// does not answer at all, within [Config.Patience] or five minutes, is a timeout.
func (c *Conn) Ask(ctx context.Context, request func(context.Context) error) error {
	limit := c.cfg.Patience
	if limit == 0 {
		limit = countingAtMost
	}
	for began, within := time.Now(), c.readTimeout; ; within *= 2 {
		once, cancel := context.WithTimeout(ctx, min(within, limit-time.Since(began)))
		err := request(once)
		cancel()
		switch waited := time.Since(began); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || !silent(err):
			return err
		case waited >= limit:
			return fmt.Errorf("the server did not answer within %v: %w", waited.Round(time.Millisecond), err)
		}
	}
}
