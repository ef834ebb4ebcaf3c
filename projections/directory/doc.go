// Package directory lists the threads of each tenant by their last change: what the filters of
// lists look at, and no documents.
//
// # What it promises
//
//   - It takes about 160 bytes a thread with a key of 15 letters, and the time of a list
//     depends on what is examined, not on how many threads there are.
//   - [Directory.Await] says how far it is.
//
// # What it does not
//
// It stores nothing and follows nothing: what follows the bucket of threads applies each [Update]. What it shows may be behind the documents.
package directory
