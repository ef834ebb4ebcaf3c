package retry

import (
	"net/http"
	"strconv"
	"time"
)

// longestAfter bounds how long the sender of an answer may postpone the next attempt.
const longestAfter = time.Hour

// After returns how long an answer asks its reader to wait before the next attempt: the milliseconds
// in Retry-After-Ms, or the seconds or the date in Retry-After. It returns at most an hour, and 0 if
// the answer does not say.
func After(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return after(ms, time.Millisecond)
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return after(seconds, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), longestAfter)
	}
	return 0
}

func after(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // also NaN
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(longestAfter)))
}
