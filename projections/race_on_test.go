//go:build race

package projections

// raceDetector reports whether the tests run under the race detector.
const raceDetector = true
