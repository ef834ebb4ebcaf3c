//go:build race

package sim

// raced says that the race detector is on, which chooses among goroutines at
// random: a seed does not repeat then.
const raced = true
