//go:build race

package query

// raceDetector reports whether the tests run under the race detector.
const raceDetector = true
