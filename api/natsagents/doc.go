// Package natsagents serves the agents of all tenants over the Synadia Agent Protocol for NATS, version
// 0.3: any client of NATS finds them as the micro service agents, and asks them.
//
//	s, err := natsagents.Serve(natsagents.Options{Conn: nc, Client: clientOf, Agents: definedAgents})
//	...
//	s.Stop(ctx)
//
// An agent of a tenant announces one address, agents.prompt.{agent}.{tenant}.main. It accepts any
// other last token as the session: the thread with the key agents:{session}.
//
// # What it promises
//
//   - A prompt is a message of a user, and its stream the run that answers: first an ack, then the
//     texts, and acks while nothing else comes. It ends with an empty message, also after an error.
//   - A call that waits for a person, and a question, is a query, whose reply decides. A reply that is
//     no answer, or does not fit, is asked for again.
//   - An agent is found as long as it is defined. Each process announces its agents with ids of its
//     own, and publishes their heartbeats; one of them answers a prompt.
//   - It acts through clients of the tenants, so their limits and quotas hold. What a tenant may have
//     in flight here is limited as well.
//   - Prompts are on connections of NATS, and so are their rights: who may publish on the subject
//     of a tenant may ask its agents.
//
// # What it does not
//
// The protocol has no way to cancel. A caller that goes away leaves its run, and the stream ends when
// the run does, when nobody answers a query for ten minutes, or after an hour.
package natsagents
