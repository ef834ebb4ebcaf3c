package metrics

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// A scrape shows what is true in that moment, and nothing where nobody knows.
func TestWatchLags(t *testing.T) {
	m := New()
	lags, err := Lags{}, error(nil)
	m.WatchLags(func(context.Context) (Lags, error) { return lags, err })
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		body, _ := io.ReadAll(w.Body)
		return string(body)
	}
	lags = Lags{Log: 12, Timeline: Lag{Seq: 10, Commits: 2, Seconds: 1.5}, Projections: map[string]Lag{"items": {Seq: 12}}}
	text := scrape()
	for _, want := range []string{
		"skein_lag_known 1\n", "skein_log_seq 12\n", "skein_timeline_seq 10\n", "skein_timeline_lag_commits 2\n", "skein_timeline_lag_seconds 1.5\n",
		"skein_projection_seq{projection=\"items\"} 12\n", "skein_projection_lag_commits{projection=\"items\"} 0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	err = errors.New("the leader does not answer")
	if text := scrape(); !strings.Contains(text, "skein_lag_known 0\n") || strings.Contains(text, "skein_log_seq") {
		t.Error("values of before are shown though nobody knows")
	}
}
