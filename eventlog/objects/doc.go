// Package objects stores objects of threads in JetStream object stores, so that no piece of one is
// ever without its thread: a purge finds what a killed writer left.
//
// # What it promises
//
//   - Any client of NATS object stores reads an object.
//   - [Store.Put] shows the old object or the new one, each whole. Of writers at the same time one
//     succeeds; the others are refused, and their pieces are removed.
//   - The pieces of an object are on a subject that begins with its name. [Store.Drop] has the
//     server overwrite all of them, whether an entry names them or not, and so does the next Put
//     with those that are older than its own. [Store.DropAll] does it for all objects under a name.
//
// # What it does not
//
// It checks no digest and caches nothing: readers, which read an object piece by piece or whole,
// are in the packages whose objects these are. Contents, which threads share, are package files'.
//
// # How an object is stored
//
// A name has tokens, tenant first: acme/T-1/17. Its entry is one message, of which the stream
// keeps the last, on $O.BUCKET.M.NAME, the name in base64. It names the subject of the pieces,
// $O.BUCKET.C.acme.T-1.17.ID, with another id for each write.
//
//	the sequence of the last entry is read
//	the pieces are published, each acknowledged before the next
//	the entry is published, on condition of that sequence
//	pieces of the object from before its first one are overwritten
//
// A piece that is older than another writer's first one has a writer that read the entry before
// that one's was stored. So that writer either was first, and the other one is refused, or will be
// refused: no entry ever names a piece that was overwritten. ADR 15 says what else was considered.
//
// # What may enter
//
// What reads, writes or lists entries and pieces. It knows names and bytes, and neither threads nor
// what is in an object.
package objects
