// Package peer runs the databases that Skein is compared with, on the same machine in the same
// run: Postgres, started in a folder of its own, and SQLite, by way of Python's module for it.
//
// What they store of a commit is what Skein stores of it, in the same bytes: a row an event, and
// in most cases a row a document. They do less than Skein: they check no schema, derive nothing,
// and no subscriber is told, unless with NOTIFY.
//
// Only dev/bench imports this package, so that programs that embed Skein do not link a
// database driver; dev/house holds to that.
package peer
