// Package telemetry holds the export of runs to a collector of OpenTelemetry, over HTTP and gRPC,
// which decodes what it is sent with the protocol's own library. It has tests only.
package telemetry
