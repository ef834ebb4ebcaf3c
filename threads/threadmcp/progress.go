package threadmcp

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressEvery is the time between two notifications of progress.
const progressEvery = 5 * time.Second

// The messages of progress.
const (
	atWork = "The agent is at work."
	inLine = "The thread has a run before this one."
)

// progress tells a client that a call of it is in progress: at once, every progressEvery, and when what
// is done changes. Its number is the seconds since the call began.
type progress struct {
	changed chan string // what is done
	cancel  context.CancelFunc
	ended   chan struct{} // closed when nothing more is told
}

// tellProgress returns the progress of a call, which does nothing unless the client asked for it. Call
// stop before the result is returned: the protocol has no progress after that.
func tellProgress(ctx context.Context, req *mcp.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	p := &progress{changed: make(chan string, 1), ended: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(ctx)
	begun := time.Now()
	go func() {
		defer close(p.ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for message := atWork; ; {
			told := mcp.ProgressNotificationParams{ProgressToken: token, Message: message, Progress: time.Since(begun).Seconds()}
			if req.Session.NotifyProgress(ctx, &told) != nil {
				return // the client has gone
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case message = <-p.changed:
			}
		}
	}()
	return p
}

// change has the client told what is done now, and does not wait for that. Calls do not overlap.
func (p *progress) change(message string) {
	if p == nil {
		return
	}
	select {
	case <-p.changed: // which was not told
	default:
	}
	p.changed <- message
}

// stop blocks until nothing more is told.
func (p *progress) stop() {
	if p != nil {
		p.cancel()
		<-p.ended
	}
}
