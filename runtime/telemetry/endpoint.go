package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/internal/retry"
)

// Pauses between attempts of a batch.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 5 * time.Second
)

// dial returns OpenTelemetry's exporter, which takes what the configuration does not
// set from its variables. It does not wait for the collector.
func (c Config) dial(ctx context.Context) (sdktrace.SpanExporter, error) {
	protocol, _ := c.protocol()
	if protocol == overGRPC {
		opts := []otlptracegrpc.Option{otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{
			Enabled: true, InitialInterval: firstPause, MaxInterval: lastPause, MaxElapsedTime: c.GiveUp,
		})}
		if c.Endpoint != "" {
			opts = append(opts, otlptracegrpc.WithEndpointURL(c.Endpoint))
		}
		return otlptracegrpc.New(ctx, opts...)
	}
	opts := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: firstPause, MaxInterval: lastPause, MaxElapsedTime: c.GiveUp,
	})}
	if c.Endpoint != "" {
		u, err := url.JoinPath(c.Endpoint, "v1", "traces")
		if err != nil {
			return nil, fmt.Errorf("--otlp-endpoint: %w", err)
		}
		opts = append(opts, otlptracehttp.WithEndpointURL(u))
	}
	return otlptracehttp.New(ctx, opts...)
}

// resource describes this process. The variables take precedence.
func (c Config) resource(ctx context.Context) (*resource.Resource, error) {
	described := []resource.Option{resource.WithTelemetrySDK(), resource.WithAttributes(semconv.ServiceName("skein"))}
	if c.Version != "" {
		described = append(described, resource.WithAttributes(semconv.ServiceVersion(c.Version)))
	}
	got, err := resource.New(ctx, append(described, resource.WithFromEnv())...)
	if errors.Is(err, resource.ErrSchemaURLConflict) || errors.Is(err, resource.ErrPartialResource) {
		err = nil // only the description is incomplete
	}
	return got, err
}

// send sends a batch, and reports whether the collector accepted it. What the collector
// refuses, or does not accept in time, is dropped. The error is ctx's.
func (x *Exporter) send(ctx context.Context, to sdktrace.SpanExporter, batch []sdktrace.ReadOnlySpan) error {
	limited, cancel := context.WithTimeoutCause(ctx, x.cfg.GiveUp, fmt.Errorf("it did not answer within %v", x.cfg.GiveUp))
	defer cancel()
	for attempts := (retry.Policy{First: firstPause, Max: lastPause}).Start(); ; {
		err := to.ExportSpans(limited, batch)
		if err == nil {
			x.metrics.Spans("exported", len(batch))
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// The library retries what the collector asks to be sent again, but not what
		// did not reach it.
		var away *url.Error
		if errors.As(err, &away) && attempts.Wait(limited) == nil {
			continue
		}
		x.metrics.Spans("dropped", len(batch))
		x.logger.Warn().Str("error", excerpt.Of(err.Error(), maxText)).Int("spans", len(batch)).
			Msg("spans were dropped: the collector did not take them; look at the endpoint and its log")
		return nil
	}
}
