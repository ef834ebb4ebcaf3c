package skein_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
)

// An agent in a Go program: its threads outlive the program, and any client can use
// them.
func Example() {
	dir, err := os.MkdirTemp("", "skein")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	s, err := skein.Start(ctx, skein.Options{Store: dir, NATSListen: skein.None, HTTPListen: skein.None})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop(ctx)

	err = s.Reactor("shout", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		return skein.Answer(strings.ToUpper(in.LastText(events.User))), nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := s.Client("acme")
	if err != nil {
		fmt.Println(err)
		return
	}
	thread, err := c.Send(ctx, "", events.CreateThread{AgentID: "shout"})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := c.Ask(ctx, thread.ThreadID, "good morning")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Text)
	// Output: GOOD MORNING
}
