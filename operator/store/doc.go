// Package store looks after the files of an embedded server, where the server
// itself does not.
//
// nats-server removes a stream of which it cannot read one block, and starts
// without it; it cuts a block that is not compressed off at the first record that
// it cannot read. [Open] therefore runs before the server: it reads every block of
// every stream that is not derived (only the last one after a clean stop), compares
// where each stream ends with what the mark says, and refuses to go on where
// something is missing. After an unclean stop it also keeps links to the files
// until the server has been seen to have all of it, see [Opened.Confirm]. It unpacks the block that
// the server will append to, which may be compressed after a power cut, and which the server would
// spoil.
//
// The mark is the file skein.mark in the store directory: where each stream ended,
// written every now and then, and, after a clean stop, which files there were. It
// does not go with a stream that is lost. [Repair] mends a store of which something
// was lost; it throws nothing away.
//
// Files of Skein's own in a store directory:
//
//	skein.lock       held by the process that uses it
//	skein.mark       where each stream ended
//	skein.sealed     the blocks of each stream that are written no more
//	skein.restoring  while a backup is being restored, and if that was interrupted
//	skein-guard      links to files, between an unclean stop and the next start
//	skein-aside      what repairs have replaced
package store
