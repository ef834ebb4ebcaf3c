//go:build race

package commands

// raceDetector reports whether the tests run under the race detector.
const raceDetector = true
