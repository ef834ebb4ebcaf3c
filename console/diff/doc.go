// Package diff shows what differs between two texts, or two JSON documents, as HTML.
//
// # What it promises
//
//   - Its functions are pure, and everything is escaped. Looks are classes.
//   - Documents are compared by their meaning: the order of an object's fields and the space
//     between them make no difference.
//   - Time and size are bounded. The lines that differ are a smallest set only if few do, and of
//     a long difference the beginning is shown, with a note.
package diff
