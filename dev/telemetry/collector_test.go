package telemetry

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// collects is a collector: what it received, and how it answers.
type collects struct {
	collector.UnimplementedTraceServiceServer
	t       testing.TB
	mu      sync.Mutex
	batches int
	spans   []*pb.Span
	about   map[string]string // the resource
	header  http.Header
	answer  func() int // an HTTP status; nil: 200
	came    chan struct{}
}

func newCollector(t testing.TB) *collects { return &collects{t: t, came: make(chan struct{}, 10_000)} }

// overHTTP serves OTLP over HTTP on an address, and returns the address.
func (c *collects) overHTTP(address string) (string, *httptest.Server) {
	c.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(c)
	s.Listener = l
	s.Start()
	c.t.Cleanup(s.Close)
	return s.URL, s
}

func (c *collects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			c.t.Error(err)
			return
		}
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return // the sender is gone
	}
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &req); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("a request to %s of %s: %v", r.URL.Path, r.Header.Get("Content-Type"), err)
	}
	c.mu.Lock()
	c.header = r.Header
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		if status := answer(); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	c.take(&req)
}

// Export implements the service over gRPC.
func (c *collects) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.take(req)
	return &collector.ExportTraceServiceResponse{}, nil
}

// overGRPC serves OTLP over gRPC, and returns its address.
func (c *collects) overGRPC() string {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, c)
	go func() { _ = s.Serve(l) }() // Stop ends it
	c.t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

func (c *collects) take(req *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches++
	for _, r := range req.ResourceSpans {
		c.about = values(r.Resource.Attributes)
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	c.came <- struct{}{}
}

// until waits until the spans meet a condition.
func (c *collects) until(what string, shows func([]*pb.Span) bool) []*pb.Span {
	c.t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		c.mu.Lock()
		spans := slices.Clone(c.spans)
		c.mu.Unlock()
		if shows(spans) {
			return spans
		}
		select {
		case <-c.came:
		case <-deadline:
			c.t.Fatalf("the collector never got %s; it has %d spans", what, len(spans))
		}
	}
}

// run waits for the spans of an execution, all of which arrive together.
func (c *collects) run(execution string) []*pb.Span {
	c.t.Helper()
	var root *pb.Span
	all := c.until("the run "+execution, func(spans []*pb.Span) bool {
		for _, s := range spans {
			if values(s.Attributes)["skein.execution.id"] == execution {
				root = s
			}
		}
		return root != nil
	})
	return slices.DeleteFunc(all, func(s *pb.Span) bool { return string(s.TraceId) != string(root.TraceId) })
}

// values returns attributes as text.
func values(attrs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attrs {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			out[a.Key] = fmt.Sprint(v.BoolValue)
		default:
			out[a.Key] = a.Value.String()
		}
	}
	return out
}

// drawing returns spans as a tree: each with its attributes, without ids and times of
// this run. Siblings are in the order of their start.
func drawing(spans []*pb.Span) string {
	children := map[string][]*pb.Span{}
	there := map[string]bool{}
	for _, s := range spans {
		there[string(s.SpanId)] = true
	}
	for _, s := range spans {
		parent := string(s.ParentSpanId)
		if !there[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	var b strings.Builder
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		list := children[parent]
		slices.SortFunc(list, func(a, b *pb.Span) int { // calls run in parallel: the one with the lesser id first, after everything else
			return cmp.Or(cmp.Compare(callOf(a), callOf(b)), cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano))
		})
		for _, s := range list {
			indent := strings.Repeat("  ", depth)
			fmt.Fprintf(&b, "%s%s [%s]", indent, s.Name, strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")))
			if s.Status.GetCode() == pb.Status_STATUS_CODE_ERROR {
				fmt.Fprintf(&b, " error %q", s.Status.Message)
			}
			b.WriteByte('\n')
			shown := values(s.Attributes)
			for _, k := range slices.Sorted(maps.Keys(shown)) {
				switch k {
				case "skein.span.id", "gen_ai.conversation.id", "skein.execution.id":
				default:
					fmt.Fprintf(&b, "%s  . %s = %s\n", indent, k, shown[k])
				}
			}
			for _, e := range s.Events {
				fmt.Fprintf(&b, "%s  ! %s\n", indent, e.Name)
			}
			draw(string(s.SpanId), depth+1)
		}
	}
	draw("", 0)
	return b.String()
}

func callOf(s *pb.Span) string { return values(s.Attributes)["gen_ai.tool.call.id"] }

// ids returns the ids of spans, sorted.
func ids(spans []*pb.Span) string {
	var out []string
	for _, s := range spans {
		out = append(out, hex.EncodeToString(s.TraceId)+"/"+hex.EncodeToString(s.SpanId)+"<"+hex.EncodeToString(s.ParentSpanId))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
