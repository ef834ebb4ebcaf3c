// Package chunks writes and reads what an execution streams while it runs.
//
// # What it promises
//
//   - The chunks of an execution are stored in order and numbered from 0, each number
//     once, also over a lost connection and when a newer claim takes over ([Writer]).
//   - [Writer.Emit] does not wait for the server. Where chunks wait, deltas of one text
//     are merged; only when [MaxWaitingBytes] wait does it block.
//   - A writer whose claim was replaced is fenced: nothing of it is stored after the
//     first chunk of the newer one.
//
// # What it does not
//
// Chunks are transport: kept for an hour, never in the log. The stream is stored without
// waiting for the disk: kill -9 of the server loses those of its last milliseconds, a power
// loss some more, and the next claim uses their numbers again.
//
// # What may enter
//
// What touches the stream of chunks. Which chunks there are, and what they mean, is in
// events; when a run ends is the thread's decision.
package chunks
