// Package blocks reads the message blocks of nats-server's file store: the files
// streams/NAME/msgs/N.blk of a store directory.
//
// It exists because nats-server, when it cannot read a block at start, removes the
// whole stream, and says so in one line of its log. Skein reads every block of what
// has no other source first, with the same checks, and refuses to start instead.
//
// A block is a sequence of records, each with a checksum of its own (HighwayHash-64
// under SHA-256 of the stream's name and the block's number). A block that was sealed is compressed as one
// S2 stream, behind the letters cmp, all but its last eight bytes, which are the
// checksum of its last record. Encrypted blocks are not read.
//
// [Reader.Scan] does not stop at damage: it goes on at the next record whose
// checksum is right, also behind a damaged piece of a compressed block, so that
// everything that can be read is found.
//
// The package does no I/O.
package blocks
