package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/skein-threads/skein/internal/excerpt"
)

// Config configures the export of traces. The zero value of a field means its default.
// The standard variables apply as well, as OpenTelemetry's exporter reads them:
// OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL, _HEADERS, _TIMEOUT, _CERTIFICATE and so on,
// each also with TRACES_ before its last word, OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_TRACES_EXPORTER (otlp or none)
// and OTEL_SDK_DISABLED.
type Config struct {
	Endpoint string        // URL of a collector; overrides the variables; default none
	Content  bool          // export messages, arguments and results, truncated to 4 KiB each; default no
	Version  string        // of this program; default none
	Linger   time.Duration // how long a span may wait for others, to fill a batch; default 1 s
	GiveUp   time.Duration // how long a batch is retried before it is dropped; default 30 s
	Kept     int64         // spans and notes of active runs in memory, each about half a KB; default 100,000
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	if c.Linger == 0 {
		c.Linger = time.Second
	}
	if c.GiveUp == 0 {
		c.GiveUp = 30 * time.Second
	}
	if c.Kept == 0 {
		c.Kept = 100_000
	}
	return c
}

// Supported protocols.
const (
	overGRPC     = "grpc"
	overProtobuf = "http/protobuf"
	overJSON     = "http/json"
)

// variable returns a variable of the exporter, preferably the one for traces.
func variable(name string) (value, from string) {
	for _, from := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		if v := strings.TrimSpace(os.Getenv(from)); v != "" {
			return v, from
		}
	}
	return "", ""
}

// Enabled reports whether traces are exported: an endpoint is set, and they are not
// switched off.
func (c Config) Enabled() bool {
	endpoint, _ := variable("ENDPOINT")
	return (c.Endpoint != "" || endpoint != "") && !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") &&
		os.Getenv("OTEL_TRACES_EXPORTER") != "none"
}

// Validate reports everything that is wrong with the configuration, as one error. If
// nothing is exported, it returns nil.
func (c Config) Validate() error {
	if !c.Enabled() {
		return nil
	}
	var errs []error
	if who := os.Getenv("OTEL_TRACES_EXPORTER"); who != "" && who != "otlp" {
		errs = append(errs, fmt.Errorf("OTEL_TRACES_EXPORTER: %q; use otlp or none", excerpt.Of(who, 64)))
	}
	protocol, from := c.protocol()
	switch protocol {
	case overGRPC, overProtobuf, overJSON:
	default:
		errs = append(errs, fmt.Errorf("%s: %q; use %s, %s or %s", from, excerpt.Of(protocol, 64), overGRPC, overProtobuf, overJSON))
	}
	endpoint, from := c.Endpoint, "--otlp-endpoint"
	if endpoint == "" {
		endpoint, from = variable("ENDPOINT")
	}
	// It may contain a password, so it is not shown.
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, fmt.Errorf("%s: it is not a URL of http or https, such as http://127.0.0.1:4318", from))
	}
	if c.Linger < 0 || c.GiveUp < 0 || c.Kept < 0 {
		errs = append(errs, errors.New("linger, give up and what is kept must not be negative"))
	}
	return errors.Join(errs...)
}

func (c Config) protocol() (protocol, from string) {
	if protocol, from = variable("PROTOCOL"); protocol == "" {
		protocol = overProtobuf
	}
	return protocol, from
}
