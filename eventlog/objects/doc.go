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
//     with those that are older than its own. [Store.ErasePieces] does it for all objects under a name.
//   - [Reader] returns the bytes that the entry says, or an error: it checks their number and their
//     digest, and holds a few pieces.
//
// # Who reads what
//
// Snapshots, archived commits, pages of histories and contents of files are objects. All are read
// with [Store.Read], and differ in three ways:
//
//   - What a snapshot's copy of the store does not show yet is not worth the leader's time
//     ([Store.FindNear]): the thread is loaded from its commits. All others need what was
//     acknowledged ([Store.Find]).
//   - The entry of a file's content lists the sequences of its pieces ([MetaPieces]), since single
//     ones are read ([Store.Piece]). All others are read in order.
//   - An archive may be replaced by one with the same commits that is compressed in another way. Its
//     reader begins again with that one, and leaves out the commits that it has read. What is
//     replaced by the same bytes needs no such care.
//
// # What it does not
//
// It caches nothing. Clients of Skein read files over requests to the service (package client).
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
// If a piece is older than the first piece of writer B, its writer A read the entry before B stored
// its own. So either A stored its entry first, and B is refused, or A will be refused: no entry ever
// names a piece that was overwritten (ADR 15).
//
// # What may enter
//
// What reads, writes or lists entries and pieces. It knows names and bytes, and neither threads nor
// what is in an object.
package objects
