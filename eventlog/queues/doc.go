// Package queues holds work that waits for a process of Skein: executions that wait for a
// worker ([Runs]), timers and due effects ([Timers]), and submitted commands
// ([Submitted]).
//
// # What it promises
//
//   - A message stays in its queue until it is acknowledged, and is redelivered when its
//     receiver says nothing of it for a while.
//   - A timer fires [TimerLead] early, once, also when the server was down at its time.
//   - An execution has one message in the queue at most.
//
// # What it does not
//
// Delivery is at least once. Runs and timers are derived: the thread decides whether an
// execution or an effect may start, and messages that a queue has lost are restored by
// comparing it with the read models.
//
// # What may enter
//
// Code that adds to, receives from, counts or erases one of these queues. The work itself
// is in runtime.
package queues
