// Package chart draws documents as HTML and SVG: the waterfall of a run, the family of a thread,
// and lines of measurements. [Fold] makes the bars of a waterfall from a thread's events alone.
//
// # What it promises
//
//   - Its functions are pure: the same values are the same bytes.
//   - Everything that came from outside is escaped. Looks are classes; there is no inline style
//     and no script.
//   - Every chart can be read without seeing it: a waterfall is a table, a family is also a
//     list, and drawings have a role, a title and a description.
//   - What is drawn is bounded ([MaxBars], [MaxNodes], [MaxPoints]); a chart says what it leaves
//     out.
package chart
