// Package transcript is the deterministic reactor: it answers from a script, for
// tests, benchmarks and demonstrations.
//
// # What it promises
//
// The answer to a step depends on nothing but its script, which is fixed or
// chosen by the step's input, and on the step's iteration: a step that is asked
// again gets the same answer, with the same ids of calls. Its texts are streamed
// in pieces of the same size. It waits for nothing and keeps nothing.
//
// # What it does not
//
// It looks at no result of a tool: the script goes on as it is written.
package transcript
