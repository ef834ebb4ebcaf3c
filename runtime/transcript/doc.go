// Package transcript is the deterministic reactor: it answers from a script, for tests,
// benchmarks and demonstrations.
//
// # What it promises
//
// The answer to a step depends only on its script, which is fixed or chosen by the
// step's input, and on the step's iteration: a repeated step has the same answer, with
// the same ids of calls. Texts are streamed in pieces of the same size. It never waits
// and keeps no state.
//
// # What it does not
//
// It ignores the results of tools: the script continues as written.
package transcript
