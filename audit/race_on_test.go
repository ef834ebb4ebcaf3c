//go:build race

package audit

// raceDetector reports whether the tests run under the race detector.
const raceDetector = true
