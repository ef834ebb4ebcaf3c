package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

// door is a service in this process whose commands end once they are decoded.
type door struct {
	service *service.Service
	schema  *schema.Validator
}

func (door) Serves(string) bool { return true }

func (d door) Request(ctx context.Context, r client.ServiceRequest) (client.ServiceAnswer, error) {
	out, err := d.service.Do(ctx, service.Call{Tenant: r.Tenant, Name: r.Name, Size: len(r.Command.Data), Handle: func(context.Context) (any, error) {
		if err := d.schema.CheckRequest(r.Command); err != nil {
			return nil, err
		}
		if _, err := d.schema.DecodeTrusted(r.Name, r.Command.Data); err != nil {
			return nil, err
		}
		return reply(), nil
	}})
	made, _ := out.(*events.Reply)
	return client.ServiceAnswer{Reply: made}, err
}

func reply() *events.Reply {
	return &events.Reply{
		ThreadID: "T-1", Version: 7, Seq: 9, Events: []events.EventRef{{ID: "019", Type: events.ItemCreatedType, Version: 7}},
		Result: &events.Result{ContextID: "ctx_1", ItemID: "itm_1"},
	}
}

// BenchmarkCommand measures what a command over HTTP costs before it reaches its thread, and after.
func BenchmarkCommand(b *testing.B) {
	nc := natstest.Connect(b, natstest.Start(b))
	v, err := schema.New()
	if err != nil {
		b.Fatal(err)
	}
	s, err := service.Serve(nc, events.DefaultNames(), service.Endpoint{Name: "bench", Kind: events.KindCommand, Version: "1.0.0", InFlight: 10}, nil, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	e, err := edge.New(edge.Options{Conn: nc, Auth: edge.Desk{Tenant: "acme"}, Service: door{s, v}, Key: edge.Limits{Rate: -1}, Tenant: edge.Limits{Rate: -1}})
	if err != nil {
		b.Fatal(err)
	}
	rest.Routes(e, rest.Options{})
	for _, size := range []int{64, 16 << 10} {
		item := `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + strings.Repeat("x", size) + `"}]}}`
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/api/threads/T-01a224c8-048c-760d-ae46-972d40aad088/items", strings.NewReader(item))
				r.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				if e.ServeHTTP(answer, r); answer.Code != http.StatusCreated {
					b.Fatalf("%d: %s", answer.Code, answer.Body)
				}
			}
		})
	}
}
