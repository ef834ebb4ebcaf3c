package server

import (
	"context"

	"github.com/skein-threads/skein/runtime/telemetry"
)

// startTelemetry exports the traces of runs, if an OTLP endpoint is configured.
func (s *Server) startTelemetry(ctx, background context.Context) error {
	cfg := s.cfg.telemetry()
	if !cfg.Enabled() {
		return nil
	}
	log, err := s.open("telemetry")
	if err != nil {
		return err
	}
	exporter, err := telemetry.New(log, cfg, s.logger, s.metrics)
	if err != nil {
		return err
	}
	if err := exporter.Ensure(ctx); err != nil {
		return err
	}
	s.hold(background, log, telemetry.Lease, exporter.Run)
	return nil
}
