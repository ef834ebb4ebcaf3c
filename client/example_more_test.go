package client_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// shouting returns a client of a Skein whose agent shout answers in capitals.
func shouting() (c *client.Client, end func()) {
	store, err := os.MkdirTemp("", "skein-example-")
	check(err)
	ctx := context.Background()
	s, err := skein.Start(ctx, skein.Options{Store: store, NATSListen: skein.None, HTTPListen: skein.None})
	check(err)
	check(s.Reactor("shout", func(_ context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		said := strings.ToUpper(in.LastText(events.User))
		out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: events.JSON(`{"id":"1","delta":` + string(events.Quote(said)) + `}`)})
		return skein.Answer(said), nil
	}))
	c, err = s.Client("acme")
	check(err)
	return c, func() {
		check(s.Stop(ctx))
		check(os.RemoveAll(store))
	}
}

// A question, and its answer.
func ExampleClient_Ask() {
	c, end := shouting()
	defer end()
	ctx := context.Background()
	thread, err := c.Send(ctx, "", events.CreateThread{AgentID: "shout"})
	check(err)

	answer, err := c.Ask(ctx, thread.ThreadID, "good morning")
	check(err)
	fmt.Println(answer.Text)
	// Output: GOOD MORNING
}

// A run goes on without its caller, who may come back and wait for its end.
func ExampleClient_WaitRun() {
	c, end := shouting()
	defer end()
	ctx := context.Background()
	thread, err := c.Send(ctx, "", events.CreateThread{AgentID: "shout"})
	check(err)
	started, err := c.Send(ctx, thread.ThreadID, events.ReactThread{Text: new("good morning")})
	check(err)

	run, err := c.WaitRun(ctx, events.GetExecution{
		ThreadID: thread.ThreadID, ExecutionID: started.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &started.Seq},
	})
	check(err)
	answer, err := c.AnswerOf(ctx, run)
	check(err)
	fmt.Println(run.Status, answer.Text)
	// Output: completed GOOD MORNING
}

// What a run streams, from its first chunk to its end.
func ExampleClient_Chunks() {
	c, end := shouting()
	defer end()
	ctx := context.Background()
	thread, err := c.Send(ctx, "", events.CreateThread{AgentID: "shout"})
	check(err)
	started, err := c.Send(ctx, thread.ThreadID, events.ReactThread{Text: new("good morning")})
	check(err)

	for chunk, err := range c.Chunks(ctx, thread.ThreadID, started.Result.ExecutionID) {
		check(err)
		if chunk.Type == events.ChunkTextDelta {
			fmt.Println(string(chunk.Data))
		}
	}
	// Output: {"delta":"GOOD MORNING","id":"1"}
}

// A run, from before the command that begins it: its chunks, and how it ended.
func ExampleClient_Ahead() {
	c, end := shouting()
	defer end()
	ctx := context.Background()
	thread, err := c.Send(ctx, "", events.CreateThread{AgentID: "shout"})
	check(err)
	ahead, err := c.Ahead(ctx, thread.ThreadID)
	check(err)
	defer ahead.Close()
	begun, err := c.Send(ctx, thread.ThreadID, events.ReactThread{Text: new("hello")})
	check(err)
	timeline := ahead.Timeline(begun, []string{"thread.finished"})
	for chunk, err := range c.Chunks(ctx, thread.ThreadID, begun.Result.ExecutionID, ahead.Chunks()) {
		check(err)
		if chunk.Type == events.ChunkTextDelta {
			fmt.Println(string(chunk.Data))
		}
	}
	ended, err := timeline.Next(ctx)
	check(err)
	fmt.Println(ended.Type)
	// Output:
	// {"delta":"HELLO","id":"1"}
	// thread.finished
}

// A program applies its definitions whenever it starts: what is as it is to be is not written again.
func ExampleClient_Apply() {
	c, end := example()
	defer end()
	ctx := context.Background()
	for range 2 {
		reply, err := c.Apply(ctx,
			events.ModelDefinition{Name: "fast", Model: "gpt-5-mini"},
			events.PromptDefinition{Name: "polite", Text: "Answer in one polite sentence."},
			events.AgentDefinition{Name: "support", Type: events.AIHuman, Model: "fast", Prompt: "polite"},
		)
		check(err)
		fmt.Println(len(reply.Events), "changed")
	}
	// Output:
	// 3 changed
	// 0 changed
}

// Follow the events of one type, with their data.
func ExampleSubscribe() {
	c, end := example()
	defer end()
	ctx := context.Background()
	created, err := client.Subscribe[events.ThreadCreated](ctx, c, client.SubscribeOptions{From: client.Now()})
	check(err)
	for _, title := range []string{"Tea", "Coffee"} {
		_, err = c.Send(ctx, "", events.CreateThread{Title: title})
		check(err)
	}
	for e, err := range created {
		check(err)
		fmt.Println(e.Version, e.Data.Title)
		if e.Data.Title == "Coffee" {
			break
		}
	}
	// Output:
	// 1 Tea
	// 1 Coffee
}

// titles is a Projector that keeps titles in memory. client.SQL is one for databases.
type titles struct {
	at  events.Position
	all map[string]string
}

func (t *titles) Position(context.Context, string) (events.Position, error) { return t.at, nil }

func (t *titles) Update(_ context.Context, _ string, from, to events.Position, apply func(map[string]string) error) error {
	if from != t.at {
		return client.ErrMoved
	}
	t.at = to
	return apply(t.all)
}

// A projection: the titles of all threads.
func ExampleProject() {
	c, end := example()
	defer end()
	ctx := context.Background()
	for _, title := range []string{"Tea", "Coffee"} {
		_, err := c.Send(ctx, "", events.CreateThread{Title: title})
		check(err)
	}
	t := &titles{all: map[string]string{}}
	err := client.Project(ctx, c, "titles", t, client.SubscribeOptions{History: true}, func(_ context.Context, all map[string]string, e client.Event) error {
		if d, is := e.Data.(events.ThreadCreated); is {
			all[e.ThreadID] = d.Title
		}
		return nil
	})
	fmt.Println(len(t.all), err)
	// Output: 2 <nil>
}

// Files of a thread.
func ExampleClient_Files() {
	c, end := example()
	defer end()
	ctx := context.Background()
	thread, err := c.Send(ctx, "", events.CreateThread{})
	check(err)

	files := c.Files(thread.ThreadID)
	_, err = files.WriteFile(ctx, "/notes/tea.md", []byte("green"), "text/markdown", client.WriteFileOptions{})
	check(err)
	raw, err := files.ReadFile(ctx, "/notes/tea.md")
	check(err)
	found, err := files.GrepFiles(ctx, "gre*n")
	check(err)
	fmt.Println(string(raw), len(found.Results))
	// Output: green 1
}

// A thread with the names of Standard Agents.
func ExampleClient_Thread() {
	c, end := example()
	defer end()
	ctx := context.Background()
	made, err := c.Send(ctx, "", events.CreateThread{Key: "orders/7"})
	check(err)

	thread, err := c.Thread(ctx, "key:orders/7")
	check(err)
	hello := "Hello"
	_, err = thread.InjectMessage(ctx, events.AddMessage{Role: events.FromUser, Content: &hello})
	check(err)
	list, err := thread.GetMessages(ctx, events.GetMessagesOptions{})
	check(err)
	fmt.Println(thread.ThreadID() == made.ThreadID, *list.Messages[0].Content)
	// Output: true Hello
}

// Live events reach who subscribes now, and are not stored.
func ExampleClient_LiveEvents() {
	c, end := example()
	defer end()
	ctx := context.Background()
	made, err := c.Send(ctx, "", events.CreateThread{})
	check(err)
	live, err := c.LiveEvents(ctx, made.ThreadID)
	check(err)
	defer live.Close()

	thread, err := c.Thread(ctx, made.ThreadID)
	check(err)
	check(thread.Emit(ctx, "typing", map[string]bool{"on": true}))
	e, err := live.Next(ctx)
	check(err)
	fmt.Println(e.Event, string(e.Data))
	// Output: typing {"on":true}
}
