// Package a2a makes agents that speak the Agent2Agent protocol tools of Skein: a call sends a message
// to an agent, waits until its task has ended or needs input, and returns what it produced.
//
// # What it promises
//
//   - The agent's card decides how it is spoken to: JSON-RPC of version 1.0, or of 0.3.
//   - The messages of a thread are one context, so the agent knows what was said before. A task that
//     needs input is a result that names the task, and a call with that task continues it.
//   - A message has an id that every attempt at the call shares, so that an agent that knows ids of
//     messages works on it once.
//   - A call whose context ends cancels the task, if the agent has named it.
//   - The token goes only where Reach says, whatever a card says, and no error holds it.
//
// # What it does not
//
// It does not subscribe: tasks are polled, so that neither a lost connection nor a slow agent breaks a
// call. It trusts nothing of a card but addresses that Reach allows. What may enter is what a client
// of the protocol needs; api/a2a serves it.
package a2a
