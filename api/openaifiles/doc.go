// Package openaifiles serves OpenAI's Files at /v1/files, and puts their contents in the place of their
// ids in messages.
//
// # What a file is
//
// A thread of its own, with the key file: and the file's id, which is file- and the thread's UUID
// without dashes. Its one file is the content, and its metadata describe it. The thread is archived, so
// that lists of conversations leave it out. ADR 16 has the reasons.
//
// # What it promises
//
//   - Nothing here has rights, quotas, audit, retention or erasure of its own: they are those of the
//     thread. A credential sees the files whose threads it may use; others do not exist for it.
//   - A file exists when all of it has arrived: its description is the last commit. Until then the
//     log itself purges the thread in some hours, whichever process dies.
//   - Deleting a file purges its thread. What of its content a message has was stored with that
//     message's thread, under its digest, and stays.
//   - Memory does not grow with a file, but for one that a message refers to, which is read whole.
package openaifiles
