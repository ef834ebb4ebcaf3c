// Package queues holds what waits for a process of Skein to do it: executions that wait
// for a worker ([Runs]), timers and what is due ([Timers]), and commands that were
// submitted ([Submitted]).
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
// Delivery is at least once. Runs and timers are derived: whether an execution or an
// effect may start is decided on its thread, and what a queue has lost is put there
// again by comparing it with the read models.
//
// # What may enter
//
// What adds to, receives from, counts or erases one of these queues. What a run or an
// effect does is in runtime.
package queues
