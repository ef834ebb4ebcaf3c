package runtime

import "time"

// Metrics is told what the workers of this process do. Each method must return at
// once, and may be called by many goroutines.
type Metrics interface {
	// Run is told of an execution that a worker let go, and of what became of it:
	// completed, failed, waits (for an approval, a person or another thread), lost
	// (to another worker), or again (it goes on later, or with another worker). asked
	// is how long ago it was asked for.
	Run(result string, asked time.Duration)
	// Reactor is told of a reactor's answer, or failure, and how long it took.
	Reactor(failed bool, took time.Duration)
	// Tool is told of a call of a tool, and how long it took with all its attempts.
	Tool(failed bool, took time.Duration, attempts int)
	// Effect is told of an attempt at an effect, and how long after it was due it
	// began.
	Effect(failed bool, late time.Duration)
}

// What becomes of an execution that a worker lets go.
const (
	RunCompleted = "completed"
	RunFailed    = "failed"
	RunWaits     = "waits"
	RunLost      = "lost"
	RunAgain     = "again"
)

// NoMetrics tells nobody.
type NoMetrics struct{}

// Run implements Metrics.
func (NoMetrics) Run(string, time.Duration) {}

// Reactor implements Metrics.
func (NoMetrics) Reactor(bool, time.Duration) {}

// Tool implements Metrics.
func (NoMetrics) Tool(bool, time.Duration, int) {}

// Effect implements Metrics.
func (NoMetrics) Effect(bool, time.Duration) {}
