package runtime

import (
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// Intake is what a dispatcher knows of runs (it is a [commands.Intake]): it queues those that are
// requested, and has the worker of this process begin them. The dispatcher is created before the
// worker, which joins with Serve. It is safe for concurrent use.
type Intake struct {
	queue  func(*events.Commit)
	worker atomic.Pointer[Worker]
}

// NewIntake returns the intake of a process. Without a worker it only queues.
func NewIntake(log *eventlog.Log, logger zerolog.Logger) *Intake {
	return &Intake{queue: Queue(log, logger)}
}

// Serve has the worker of this process begin runs.
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
