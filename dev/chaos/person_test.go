package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// wasDone is the reason with which the person denies a call whose work was done.
const wasDone = "it was done before"

// person answers the approvals that are asked for, from what the ledger says.
type person struct {
	c     *client.Client
	book  ledger
	lives func(pid int) bool

	mu      sync.Mutex
	granted int
	denied  map[string]bool // by execution and call
}

// answersAll lets the person answer every approval in the background until ctx ends.
func (p *person) answersAll(ctx context.Context, t *testing.T, others *sync.WaitGroup) {
	others.Go(func() {
		if err := p.answer(ctx, client.Start()); err != nil {
			t.Error(err)
		}
	})
}

// answer answers approvals until ctx ends.
func (p *person) answer(ctx context.Context, from client.Position) error {
	line, err := p.c.Timeline(ctx, client.SubscribeOptions{Types: []string{string(events.ApprovalRequestedType)}, From: from})
	if err != nil {
		return err
	}
	defer line.Close()
	for e, err := range line.All(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if d, ok := e.Data.(events.ApprovalRequested); ok {
			if err := p.judge(ctx, e, d); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
	return nil
}

// judge grants a call whose work was not done, and denies one whose work was done. It
// waits while a process lives that has begun the work.
func (p *person) judge(ctx context.Context, e client.Event, d events.ApprovalRequested) error {
	key := e.Correlation + ":" + d.StepID + ":" + d.CallID
	for {
		book, err := p.book.read()
		if err != nil {
			return err
		}
		p.mu.Lock()
		switch w := book[key]; {
		case len(w.done) > 0:
			p.denied[e.Correlation+":"+d.CallID] = true
			p.mu.Unlock()
			_, err = p.c.Send(ctx, e.ThreadID, events.DenyApproval{CallID: d.CallID, Comment: wasDone})
		case !slices.ContainsFunc(w.begun, p.lives):
			p.granted++
			p.mu.Unlock()
			_, err = p.c.Send(ctx, e.ThreadID, events.GrantApproval{CallID: d.CallID})
		default:
			p.mu.Unlock()
			select {
			case <-time.After(20 * time.Millisecond): // nothing signals a change of the ledger
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		var refused *events.Error
		if errors.As(err, &refused) && refused.Code == events.NotFound {
			return fmt.Errorf("the call %s of %s was asked about, and does not wait: %w", d.CallID, e.Correlation, err)
		}
		return err
	}
}
