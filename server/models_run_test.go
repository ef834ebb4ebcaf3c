package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// A run with a tool that waits for an approval, over each protocol, with an endpoint that refuses what
// the real ones refuse, and that is the fallback of one that is down.
func TestModels_RunWithAnApproval(t *testing.T) {
	t.Parallel()
	for _, p := range modeltest.Protocols() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			var s *modeltest.Strict
			s = modeltest.ServeStrict(t, p, func(*modeltest.Stream) *modeltest.Answer {
				if s.Count() == 1 {
					return &modeltest.Answer{
						Reasoning: "think", Seal: "sealed", Text: []string{"I pay ", "it."},
						Calls: []modeltest.Call{{ID: "call_1", Name: "pay", Pieces: []string{`{\"eur\"`, `:5}`}}},
					}
				}
				return &modeltest.Answer{Text: []string{"Paid."}}
			})
			down := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) { w.Refuse(529, "") })
			path := "/v1"
			if p.Name == "messages" {
				path = ""
			}
			paid := make(chan int64, 10)
			d := newDesk(t, func(c *server.Config) {
				c.ModelEndpoints = []string{"down=" + p.Name + "," + down.URL + path, "up=" + p.Name + "," + s.URL + path}
				c.ModelEndpointOptions = []string{"down.attempts=1"}
				own := c.Register
				c.Register = func(r *runtime.Registry) error {
					type in struct {
						EUR int64 `json:"eur"`
					}
					return errors.Join(own(r), r.AddTool(must(runtime.DefineTool(runtime.ToolSpec{Name: "pay", Description: "Pays.", Manual: true},
						func(_ context.Context, _ *runtime.ToolInput, a in) (string, error) {
							paid <- a.EUR
							return fmt.Sprintf("paid %d", a.EUR), nil
						}))(t)))
				}
			})
			d.apply("tool", `{"name":"pay","description":"Pays.","type":"go","auto":false}`,
				"model", `{"name":"spare","model":"test-model","endpoint":"up"}`, "model", `{"name":"fast","model":"test-model","endpoint":"down","fallback":["spare"]}`,
				"agent", `{"name":"clerk","type":"ai_human","model":"fast","tools":["pay"]}`)
			text := "pay it"
			reply := d.react(d.thread("clerk"), events.ReactThread{Text: &text})
			d.waits(reply, events.RunWaitsApproval)
			if _, err := d.c.Send(d.ctx, reply.ThreadID, events.GrantApproval{CallID: "call_1"}); err != nil {
				t.Fatal(err)
			}
			if said := d.said(reply); !strings.Contains(said, `"Paid."`) || len(s.Refused) > 0 || down.Count() != 2 || <-paid != 5 {
				t.Errorf("it said %q; refused %v; the first endpoint was asked %d times", said, s.Refused, down.Count())
			}
			second := string(s.Body(t, 1))
			if !strings.Contains(second, "paid 5") || p.Name != "chat" && !strings.Contains(second, "sealed") {
				t.Errorf("the second request is %s", second)
			}
			x := d.ends(reply)
			logs := must(client.Read(d.ctx, d.c, events.ListLogs{ThreadID: reply.ThreadID, Fresh: events.Fresh{MinSeq: &x.Seq}}))(t)
			told := modeltest.Written(t, logs)
			if strings.Count(told, "answered 529; the model spare is asked instead of fast") != 2 || strings.Contains(told, down.URL) || x.Usage == nil || x.Usage.Provider != "up" || x.Usage.InputTokens != 240 {
				t.Errorf("usage %+v, and the log %s", x.Usage, told)
			}
		})
	}
}
