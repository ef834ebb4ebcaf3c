package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// example returns a client of a Skein in this process, and a function that closes both.
// Your program calls client.Connect with the URL of its server.
func example() (c *client.Client, end func()) {
	store, err := os.MkdirTemp("", "skein-example-")
	check(err)
	s, err := skein.Start(context.Background(), skein.Options{Store: store, NATSListen: "127.0.0.1:0", HTTPListen: skein.None})
	check(err)
	c, err = client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme"})
	check(err)
	return c, func() {
		c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		check(s.Stop(ctx))
		check(os.RemoveAll(store))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func text(role events.Role, kind, said string) events.CreateItem {
	return events.CreateItem{Item: events.NewItem{
		Type: events.Message, Role: role, Content: json.RawMessage(fmt.Sprintf(`[{"type":%q,"text":%q}]`, kind, said)),
	}}
}

// Create a thread, add to it, and read it.
func Example() {
	c, end := example()
	defer end()
	ctx := context.Background()

	made, err := c.Send(ctx, "", events.CreateThread{Key: "orders/7", Title: "Where is my order?"})
	check(err)
	reply, err := c.Send(ctx, made.ThreadID, text(events.User, events.InputText, "Hello"))
	check(err)

	// A reply means durable. Read models follow; WithMinSeq waits for them.
	now := c.WithMinSeq(reply.Seq)
	thread, err := client.Read(ctx, now, events.GetThread{ThreadID: "key:orders/7"})
	check(err)
	fmt.Println(thread.Title, thread.Status, thread.Version, thread.Items)

	// The thread at an earlier version.
	before, err := client.Read(ctx, now, events.GetThread{ThreadID: made.ThreadID, At: &events.At{Version: &made.Version}})
	check(err)
	fmt.Println("before:", before.Version, before.Items)
	// Output:
	// Where is my order? open 4 1
	// before: 3 0
}

// Several commands in one atomic commit: all of them, or none.
func ExampleClient_Commit() {
	c, end := example()
	defer end()
	ctx := context.Background()
	made, err := c.Send(ctx, "", events.CreateThread{})
	check(err)

	item, err := client.Sub("item.create", text(events.User, events.InputText, "Plan it"))
	check(err)
	begin, err := client.Sub("thread.status", events.SetThreadStatus{To: events.ThreadStreaming})
	check(err)
	reply, err := c.Commit(ctx, made.ThreadID, []events.SubCommand{item, begin})
	check(err)
	for _, e := range reply.Events {
		fmt.Println(e.Version, e.Type)
	}

	// The second command is refused, so the first is not executed either.
	_, err = c.Commit(ctx, made.ThreadID, []events.SubCommand{item, begin})
	var refusal *events.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code, refusal.Details.From, refusal.Details.To, refusal.Details.Allowed)
	}
	// Output:
	// 3 item.created
	// 4 thread.status.changed
	// illegal_transition streaming streaming [open closed failed]
}

// Follow a tenant: its history, and then new events.
func ExampleClient_Timeline() {
	c, end := example()
	defer end()
	ctx := context.Background()
	made, err := c.Send(ctx, "", events.CreateThread{})
	check(err)

	line, err := c.Timeline(ctx, client.SubscribeOptions{From: client.Start()})
	check(err)
	defer line.Close()
	_, err = c.Send(ctx, made.ThreadID, text(events.User, events.InputText, "Hello"))
	check(err)
	for e, err := range line.All(ctx) {
		check(err)
		fmt.Println(e.Version, e.Type)
		if e.Type == events.ItemCreatedType {
			break
		}
	}
	// Output:
	// 1 thread.created
	// 2 context.created
	// 3 item.created
}

// A durable consumer continues where it was, in any process.
func ExampleClient_Consume() {
	c, end := example()
	defer end()
	ctx, cancel := context.WithCancel(context.Background())
	made, err := c.Send(ctx, "", events.CreateThread{})
	check(err)
	_, err = c.Send(ctx, made.ThreadID, text(events.User, events.InputText, "Hello"))
	check(err)

	err = c.Consume(ctx, "mailer", client.Filter{Types: []string{"item.created"}}, func(_ context.Context, e client.Event) error {
		fmt.Println(e.Version, e.Type)
		cancel() // enough for an example
		return nil
	})
	fmt.Println(err)
	// Output:
	// 3 item.created
	// context canceled
}

// A stored command is executed once, even if this process ends now. A refusal appears
// on the timeline.
func ExampleClient_Submit() {
	c, end := example()
	defer end()
	ctx := context.Background()
	made, err := c.Send(ctx, "", events.CreateThread{})
	check(err)
	line, err := c.Timeline(ctx, client.SubscribeOptions{Thread: made.ThreadID, From: client.Now()})
	check(err)
	defer line.Close()

	_, err = c.Submit(ctx, "thread.status", client.Request{ThreadID: made.ThreadID, Data: events.SetThreadStatus{To: events.ThreadClosed}})
	check(err)
	e, err := line.Next(ctx)
	check(err)
	fmt.Println(e.Type, e.Data.(events.CommandRejected).Code)
	// Output:
	// command.rejected illegal_transition
}

// A json.RawMessage, and what json.Marshal returns, are valid in a request as they are,
// and values of an answer are valid in the next request: no conversion is needed.
func Example_json() {
	c, end := example()
	defer end()
	ctx := context.Background()

	order, err := json.Marshal(map[string]int{"order": 7})
	check(err)
	made, err := c.Send(ctx, "", events.CreateThread{Metadata: json.RawMessage(`{"shop":"tea"}`), Context: order})
	check(err)
	reply, err := c.Send(ctx, made.ThreadID, events.SetContext{Patch: json.RawMessage(`{"paid":true}`)}, client.ExpectVersion(made.Version))
	check(err)

	thread, err := client.Read(ctx, c, events.GetThread{ThreadID: made.ThreadID, Fresh: events.Fresh{MinSeq: &reply.Seq}})
	check(err)
	var metadata struct {
		Shop string `json:"shop"`
	}
	check(json.Unmarshal(thread.Metadata, &metadata))
	then, err := client.Read(ctx, c, events.GetContext{ThreadID: made.ThreadID, Fresh: events.Fresh{MinVersion: &reply.Version}})
	check(err)
	fmt.Println(metadata.Shop, string(then.Content))
	// Output:
	// tea {"order":7,"paid":true}
}
