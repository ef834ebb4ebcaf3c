package console_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
)

// fillThread adds n messages to a thread, and returns its id when all of them are shown.
func fillThread(ctx context.Context, c *client.Client, key string, n int) (string, error) {
	reply, err := c.Send(ctx, "", events.ResolveThread{Key: key, AgentID: operator.DemoAgent, Title: fmt.Sprintf("A conversation of %d messages", n), UserID: "ada"})
	if err != nil {
		return "", err
	}
	id, shown := reply.ThreadID, c
	for done := 0; done < n; {
		var batch []events.SubCommand
		for ; done < n && len(batch) < 200; done++ {
			item := events.NewItem{Type: events.Message, Role: events.User, Content: events.MessageText(false, new(fmt.Sprintf("Question %d: what comes after %d?", done, done)))}
			if done%2 == 1 {
				item.Role, item.Content = events.Assistant, events.MessageText(true, new(fmt.Sprintf("After **%d** comes `%d`.%s", done-1, done, strings.Repeat(" It goes on.", done%7))))
			}
			sub, err := client.Sub("item.create", events.CreateItem{Item: item})
			if err != nil {
				return "", err
			}
			batch = append(batch, sub)
		}
		reply, err = c.Commit(ctx, id, batch)
		if err != nil {
			return "", err
		}
		shown = c.WithMinSeq(reply.Seq)
	}
	if _, err := client.Read(ctx, shown, events.GetThread{ThreadID: id}); err != nil {
		return "", err
	}
	_, err = client.Read(ctx, shown, events.ListItems{ThreadID: id, Limit: new(int64(1))})
	return id, err
}
