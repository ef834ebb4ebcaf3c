package runtime

import "time"

// Metrics counts what the workers of this process do. Its methods must not block, and
// are called concurrently.
type Metrics interface {
	// Run is called when a worker releases an execution, with the result: completed,
	// failed, waits (for an approval, a person or another thread), lost (to another
	// worker), or again (it continues later, or in another worker). asked is the time
	// since it was requested.
	Run(result string, asked time.Duration)
	// Reactor is called after a reactor's answer, or failure, with its duration.
	Reactor(failed bool, took time.Duration)
	// Tool is called after a call of a tool, with its duration including all attempts.
	Tool(failed bool, took time.Duration, attempts int)
	// Effect is called when an attempt of an effect starts, with its delay.
	Effect(failed bool, late time.Duration)
}

// Results of an execution that a worker releases.
const (
	RunCompleted = "completed"
	RunFailed    = "failed"
	RunWaits     = "waits"
	RunLost      = "lost"
	RunAgain     = "again"
)

// NoMetrics implements Metrics and does nothing.
type NoMetrics struct{}

// Run implements Metrics.
func (NoMetrics) Run(string, time.Duration) {}

// Reactor implements Metrics.
func (NoMetrics) Reactor(bool, time.Duration) {}

// Tool implements Metrics.
func (NoMetrics) Tool(bool, time.Duration, int) {}

// Effect implements Metrics.
func (NoMetrics) Effect(bool, time.Duration) {}
