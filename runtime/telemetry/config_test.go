package telemetry

import (
	"strings"
	"testing"
)

// The flag, or the standard variables, set where traces are sent.
func TestConfig(t *testing.T) {
	for what, c := range map[string]struct {
		cfg     Config
		env     string
		enabled bool
		wrong   string
	}{
		"nothing":        {},
		"the flag":       {cfg: Config{Endpoint: "http://127.0.0.1:4318"}, enabled: true},
		"the variable":   {env: "OTEL_EXPORTER_OTLP_ENDPOINT=https://c.example/otlp", enabled: true},
		"that of traces": {env: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c.example/x", enabled: true},
		"switched off":   {cfg: Config{Endpoint: "nonsense"}, env: "OTEL_SDK_DISABLED=True"},
		"no exporter":    {cfg: Config{Endpoint: "nonsense"}, env: "OTEL_TRACES_EXPORTER=none"},
		"another one":    {cfg: Config{Endpoint: "http://c"}, env: "OTEL_TRACES_EXPORTER=console", enabled: true, wrong: "OTEL_TRACES_EXPORTER"},
		"no URL":         {cfg: Config{Endpoint: "user:hunter2@c:4317"}, enabled: true, wrong: "--otlp-endpoint"},
		"no URL there":   {env: "OTEL_EXPORTER_OTLP_ENDPOINT=c:4317", enabled: true, wrong: "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"a protocol":     {cfg: Config{Endpoint: "http://c"}, env: "OTEL_EXPORTER_OTLP_PROTOCOL=smtp", enabled: true, wrong: "OTEL_EXPORTER_OTLP_PROTOCOL"},
	} {
		t.Run(what, func(t *testing.T) {
			for _, name := range []string{"ENDPOINT", "TRACES_ENDPOINT", "PROTOCOL", "TRACES_PROTOCOL"} {
				t.Setenv("OTEL_EXPORTER_OTLP_"+name, "")
			}
			if name, value, ok := strings.Cut(c.env, "="); ok {
				t.Setenv(name, value)
			}
			if c.cfg.Enabled() != c.enabled {
				t.Errorf("enabled: %v", c.cfg.Enabled())
			}
			err := c.cfg.Validate()
			if (c.wrong == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("%v", err)
			}
		})
	}
}
