// Package streams reads and writes JetStream streams over one connection. It is
// the lowest layer of eventlog: it knows streams, subjects and buckets, and nothing
// of threads and commits.
//
// # What it promises
//
//   - [Conn.Leader] never returns less than what was acknowledged before; a direct
//     read ([Conn.Direct], [Conn.Messages]) may come from a replica that lags.
//   - A read of a bucket ([Bucket]) is never older than the [Floors] of the process:
//     a replica that lags behind them is asked again.
//   - A read that is not answered is retried for [Config.Patience], and its error says
//     what is known of the cause ([SilentError], [UnreadableError]).
//   - [Classify] is the one place that knows the server's error codes.
//   - [Conn.Ensure] refuses a stream that exists and would lose data ([AssetError]),
//     and changes nothing then.
//
// # What it does not
//
// It does not retry a publish: whether one with an unknown Outcome may be sent again
// depends on its conditions, which the caller knows.
//
// # What may enter
//
// What two packages of eventlog need and what names no thread, commit or event.
package streams
