//go:build race

package directory

// raceDetector reports whether the tests run under the race detector.
const raceDetector = true
