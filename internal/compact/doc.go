// Package compact keeps many small values by id in little memory: without pointers, so that the
// garbage collector has nothing to mark, however many they are.
//
// A [Map] decides for each value by the value's own Pack. What cannot be packed without loss is
// kept as it is.
//
// # What it promises
//
//   - A Map is a map: what was set is what is found, packed or not.
//   - The same entries are written as the same JSON, an object in the order of the ids.
//
// # What it does not
//
// It knows nothing of threads, takes no locks, and does not free what a [Pool] holds while the
// pool is in use.
package compact
