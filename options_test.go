package skein_test

import (
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
)

// Options that have no effect together, and limits that are negative, are refused by their names,
// all at once, and so is the start.
func TestOptions_WhatMeansNothing(t *testing.T) {
	const nats = "nats://127.0.0.1:1"
	for name, c := range map[string]struct {
		o    skein.Options
		says string
	}{
		"a store with NATS":             {skein.Options{NATS: nats, Store: "data"}, "Store has no effect with NATS"},
		"a listener with NATS":          {skein.Options{NATS: nats, NATSListen: "127.0.0.1:0"}, "NATSListen has no effect with NATS"},
		"volatile with NATS":            {skein.Options{NATS: nats, Volatile: true}, "Volatile has no effect with NATS"},
		"accounts with NATS":            {skein.Options{NATS: nats, Access: "dir"}, "--access is for the embedded server"},
		"credentials without NATS":      {skein.Options{Creds: "c"}, "Creds has no effect without NATS"},
		"an authority without NATS":     {skein.Options{CA: "c"}, "CA has no effect without NATS"},
		"keys without NATS":             {skein.Options{HTTPKeys: "dir"}, "--http-keys is for --nats"},
		"replicas without NATS":         {skein.Options{Replicas: 3}, "--replicas"},
		"negative replicas":             {skein.Options{NATS: nats, Replicas: -1}, "replicas"},
		"a certificate without its key": {skein.Options{TLSCert: "c"}, "--tls-cert and --tls-key belong together"},
		"that without a listener":       {skein.Options{HTTPListen: skein.None, TLSKey: "k"}, "--http-listen, which is none"},
		"a certificate and no listener": {skein.Options{HTTPListen: skein.None, TLSCert: "c", TLSKey: "k"}, "--http-listen, which is none"},
		"an audience without an issuer": {skein.Options{HTTPListen: skein.None, JWTAudience: "a"}, "belong to --jwt-issuer"},
		"a key's limit of no kind":      {skein.Options{HTTPListen: skein.None, HTTPKeyLimits: map[string]int{"x": 1}}, "--http-key-limits"},
		"a negative cache":              {skein.Options{ThreadCache: -1}, "--thread-cache"},
		"a negative tool time":          {skein.Options{MaxToolTime: -1}, "--max-tool-time"},
		"a negative upload time":        {skein.Options{MaxUploadTime: -1}, "--max-upload-time"},
		"a negative pause of retention": {skein.Options{ArchiveEvery: -time.Hour}, "ArchiveEvery"},
		"negative places":               {skein.Options{Places: map[string]int{"uploads": -1}}, "--places"},
		"two at once":                   {skein.Options{NATS: nats, Store: "data", MaxToolTime: -1}, "Store has no effect with NATS"},
	} {
		if c.o.Store == "" && c.o.NATS == "" {
			c.o.Store = t.TempDir()
		}
		if err := c.o.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if s, err := skein.Start(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s was started: %v, %v", name, s, err)
		}
	}
	for name, o := range map[string]skein.Options{
		"nothing": {}, "NATS": {NATS: nats, Creds: "c", CA: "c", Replicas: 3, NATSListen: skein.None}, "no limits": {TenantRate: -1, TenantInFlight: -1, TenantKVMiB: -1, Workers: -1, TenantPlaces: map[string]int{"runs": -1}},
		"a handler without a listener": {HTTPListen: skein.None, HTTPHosts: []string{"a"}, HTTPKeyLimits: map[string]int{"rate": -1}},
	} {
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
