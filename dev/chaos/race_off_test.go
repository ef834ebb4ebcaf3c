//go:build !race

package chaos

// raced reports whether the tests run under the race detector.
const raced = false
