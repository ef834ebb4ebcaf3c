// Package effects runs the effects of threads: a [Worker] starts those that are due, as
// [runtime.Effect] says, and [Timers] keep their timers as the log says.
//
// A timer is a message of JetStream's scheduler. It only wakes a worker: the decision on the thread
// says whether an attempt may start, so one that comes twice, late or after a cancel does no harm.
// Each attempt is started by one worker. If that dies the attempt has failed, and another worker
// starts the next one.
package effects
