// Package buckets is the store of the read models: how their documents lie in
// key-value buckets, and how far each bucket shows the log.
//
// # What it promises
//
//   - A document is under the key of its place; one that is too large for a message is
//     in pieces, each under its digest, before the stub that names them. [Whole] reads
//     both, and never returns less than the whole document.
//   - A document that was removed is replaced by a marker, which bears the sequence in
//     the log of the commit that removed it.
//   - A [Checkpoint] is in the same stream as the documents that it covers, and after
//     them: what a crash of the server leaves of a bucket is a state that it had.
//   - [Progress] is the sequence in the log up to which all read models are stored. A
//     reader waits for it and never asks again and again.
//
// # What it does not
//
// It writes nothing: the runner writes through its fences, a rebuild on condition of
// what it compared. It knows nothing of what documents contain.
//
// # What may enter
//
// What at least two of the runner, its rebuild, its cleanup and the queries must know
// of a bucket. It imports events, eventlog and projections/documents.
package buckets
