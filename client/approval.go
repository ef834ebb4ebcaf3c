package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// GivenAnswer is the answer that a call which waited for a person was given.
type GivenAnswer struct {
	events.ResolveApproval
	CommandID string // of the command that gave it
}

// AnswersTo returns the answers that calls of a thread were given, by call, of its events from a version
// on; of a call that was asked about twice, the last one.
func AnswersTo(ctx context.Context, c *Client, thread string, from int64) (map[string]GivenAnswer, error) {
	given := map[string]GivenAnswer{}
	types := []string{string(events.ApprovalGrantedType), string(events.ApprovalDeniedType), string(events.ApprovalResolvedType)}
	for from = max(from, 1); from > 0; {
		page, err := Read(ctx, c, events.ListEvents{ThreadID: thread, FromVersion: &from, Types: types, Limit: new(int64(1000))})
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				return nil, err
			}
			if d, ok := events.AnswerIn(&e); ok {
				given[d.CallID] = GivenAnswer{d, e.CommandID}
			}
		}
		from = page.NextVersion
	}
	return given, nil
}
