package retry

import (
	"net/http"
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		seconds, ms string
		want        time.Duration
	}{
		"none":                   {"", "", 0},
		"seconds":                {"7", "", 7 * time.Second},
		"parts of seconds":       {"0.5", "", 500 * time.Millisecond},
		"milliseconds first":     {"7", "20", 20 * time.Millisecond},
		"a date":                 {now.Add(time.Minute).Format(http.TimeFormat), "", time.Minute},
		"a date in the past":     {now.Add(-time.Minute).Format(http.TimeFormat), "", 0},
		"more than an hour":      {"86400", "", time.Hour},
		"a date in a year":       {now.AddDate(1, 0, 0).Format(http.TimeFormat), "", time.Hour},
		"infinite":               {"Inf", "", time.Hour},
		"negative":               {"-5", "", 0},
		"no number":              {"NaN", "", 0},
		"neither":                {"soon", "later", 0},
		"seconds without a unit": {"7s", "", 0},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.seconds)
		h.Set("Retry-After-Ms", c.ms)
		if got := After(h, now); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
