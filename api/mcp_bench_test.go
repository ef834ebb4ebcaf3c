package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/skeintest"
)

// BenchmarkRequest is a request that does next to nothing: what each one costs.
func BenchmarkRequest(b *testing.B) {
	s := skeintest.Start(b, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	url := s.Addresses().HTTP + "/mcp"
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), "POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if _ = res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			b.Fatalf("%d %s %v", res.StatusCode, text, err)
		}
	}
}
