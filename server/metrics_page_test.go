package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/server/metrics"
)

// The page, the alerts and the dashboard name only metrics that exist, and a Skein that works shows
// them.
func TestMetrics_PageAlertsAndDashboard(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	for _, m := range metrics.List() {
		rows[m.Name] = m.Help
	}
	if len(rows) < 30 {
		t.Fatalf("%d metrics", len(rows))
	}
	read := func(name ...string) string {
		raw, err := os.ReadFile(filepath.Join(append([]string{".."}, name...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	s := run(t, free(t))
	c, err := client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Send(t.Context(), "", events.CreateThread{}); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, s.Addresses().HTTP)
	name := regexp.MustCompile(`\bskein_[a-z_]+`)
	for _, known := range name.FindAllString(text, -1) {
		if base := metricOf(known); rows[base] == "" {
			t.Errorf("%s is shown, and not in the list", known)
		}
	}
	for _, file := range [][]string{{"docs", "metrics.md"}, {"deploy", "prometheus", "alerts.yaml"}, {"deploy", "grafana", "skein.json"}} {
		for _, used := range name.FindAllString(read(file...), -1) {
			if rows[metricOf(used)] == "" {
				t.Errorf("%s names %s, which does not exist", filepath.Join(file...), used)
			}
		}
	}
}

// metricOf returns the metric that a series of it belongs to.
func metricOf(series string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(series, suffix); ok && strings.HasSuffix(base, "_seconds") || ok && strings.HasSuffix(base, "_commits") ||
			ok && strings.HasSuffix(base, "_bytes") || ok && strings.HasSuffix(base, "_commands") {
			return base
		}
	}
	return series
}
