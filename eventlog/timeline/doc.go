// Package timeline puts each event of the log on the timeline, as a message of its own that
// clients subscribe to, and reads and erases what the timeline keeps.
//
// # What it promises
//
//   - The timeline holds each event of the log once and in order, also when the relay is
//     killed or two of them run: the relay is the only writer of the stream, and every message
//     that it writes is conditional on the one before ([derived.Fence]).
//   - [Timeline.Relay] resumes at the stream's own last message, so nothing else records how
//     far it got. Messages that Skein did not write are removed from the end.
//   - [Timeline.Rebuild] may run while the relay runs. Each event still comes once.
//   - A tenant's durable consumer ([Consumers]) delivers one event, or one batch, at a time, in
//     order, and redelivers what is not acknowledged within [ConsumerWait].
//
// # What it does not
//
// The timeline is derived: it is kept for some days, and stored without waiting for the disk.
// What it lost is relayed again. It may lag behind the log; [Timeline.Await] waits for it.
//
// # The headers of a message
//
// Each has a reader, so each stays:
//
//	header                     reader
//	Content-Type               subscribers that are not Skein's client: CloudEvents' binding to NATS tells a
//	                           structured event by it
//	Skein-Seq                  the client (gaps, minSeq), consumers, the relay at a start, the audit, and
//	                           operator/store, which proves by it what the log had; in asyncapi.yaml
//	Skein-Version              the relay at a start, the rebuild and the audit. The event has it too, but
//	                           the mark of a rebuild is no event, and heal compares the two
//	Nats-Msg-Id                the server: the next message's condition. One copy only
//	Nats-Expected-Last-Msg-Id  the server: refuses a second writer (adr/0002). It stores the header with
//	                           the message, and has no way not to. One copy only
//	Nats-Expected-Last-Sequence
//	                           the server: the condition of a fence's first message, or of a batch
//
// The last three are the fence's, and nobody reads them once the message is stored. On the disk of
// the embedded server they are compressed with the rest.
//
// # What may enter
//
// What writes, reads or erases the stream of the timeline. Its settings are in assets; chunks
// are republished on its subjects, but are not stored there.
package timeline
