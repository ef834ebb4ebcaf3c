// Package assets defines the streams and buckets of Skein: their names and settings, which
// of them are derived, and what a backup copies.
//
// # What it promises
//
//   - [Ensure] creates the streams, or brings them up to date, and leaves the limits and the
//     placement that an operator has set. A stream that exists and would lose data is refused
//     with a *[streams.AssetError], and nothing is changed.
//   - [Derived] and [Kept] divide the streams: what is not derived cannot be rebuilt and is in
//     every backup.
//   - [CheckWhole] notices that the end of the log was lost, by what derived streams show of it.
//
// # What it does not
//
// It neither reads nor writes what the streams hold, except for the positions that
// [CheckWhole] compares.
//
// # What may enter
//
// A stream or bucket that Skein has, with its settings. How one is written is in the room that
// writes it.
package assets
