//go:build race

package server_test

// raced reports whether the tests run under the race detector.
const raced = true
