// Visitors is an HTTP server that remembers its visitors.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/state"
)

type Ask struct {
	Message string `json:"message" doc:"What the visitor says."`
}

type Reply struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
}

// chat answers with what the visitor has said so far; your model's answer would be here.
func chat(ctx context.Context, in Ask) (Reply, error) {
	thread := state.Thread(ctx)
	if err := thread.Push(ctx, "messages", in.Message, 50); err != nil {
		return Reply{}, err
	}
	messages, _, err := state.Get[[]string](ctx, thread, "messages")
	return Reply{"You said " + strings.Join(messages, ", ") + ".", len(messages)}, err
}

// short judges each answer when it has been sent.
func short(_ context.Context, r state.AgentRun[Ask, Reply]) (state.EvalResult, error) {
	return state.EvalResult{Passed: len(r.Output.Text) < 30, Reason: r.Output.Text}, nil
}

// archive keeps what was said when a visitor's state ends.
func archive(ctx context.Context, e state.Event) error {
	messages, _, err := state.Get[[]string](ctx, e.Thread, "messages")
	if err != nil {
		return err
	}
	kept := map[string]any{"messages": messages, "endedAt": time.Now()}
	return state.KV(ctx).Set(ctx, "archives", e.Thread.ID, kept, state.TTLSeconds(604_800))
}

func main() {
	ctx := context.Background()
	url := cmp.Or(os.Getenv("NATS_URL"), "nats://127.0.0.1:4222")
	c, err := client.Connect(url, client.Options{Tenant: "acme"})
	check(err)
	agent, err := state.NewAgent("Chat", chat, state.WithEval("short", short))
	check(err)
	app, err := state.New(ctx, state.Options{
		Client: c, Name: "visitors", Development: true, // in production, Keys: from a secret store
		Listeners: []state.Listener{{Name: "archive", Event: state.ThreadDestroyed, Run: archive}},
	})
	check(err)
	go func() { check(app.Listen(ctx)) }()
	web, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"))
	check(err)
	fmt.Println("listening on", web.Addr())
	check(http.Serve(web, state.Middleware(app)(agent)))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
