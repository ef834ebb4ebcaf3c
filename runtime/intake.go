package runtime

import (
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// Intake implements [commands.Intake]: it queues requested runs, and lets the worker of this
// process begin them. The dispatcher needs it before there is a worker, so the worker is set
// later, with Serve. It is safe for concurrent use.
type Intake struct {
	queue  func(*events.Commit)
	worker atomic.Pointer[Worker]
}

// NewIntake returns the intake of a process. Without a worker it only queues.
func NewIntake(log *eventlog.Log, logger zerolog.Logger) *Intake {
	return &Intake{queue: Queue(log, logger)}
}

// Serve sets the worker of this process, which begins runs from now on.
func (i *Intake) Serve(w *Worker) { i.worker.Store(w) }

// Worker returns the worker of this process, nil if it has none yet.
func (i *Intake) Worker() *Worker { return i.worker.Load() }

// Stored implements commands.Intake.
func (i *Intake) Stored(c *events.Commit) {
	if w := i.worker.Load(); w != nil {
		w.Stored(c)
	}
	i.queue(c)
}

// Joins implements commands.Intake.
func (i *Intake) Joins(made []events.Event) *commands.Joined {
	if w := i.worker.Load(); w != nil {
		return w.Begin(made)
	}
	return nil
}
