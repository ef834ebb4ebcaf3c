package operator

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// FillDemo fills a tenant with conversations worth looking at: one answered, with a tool, files and a
// fork; one that waits for an approval; one whose run failed. It returns when all of their runs have
// ended or wait. The program serves DemoAgent.
func FillDemo(ctx context.Context, c *client.Client) error {
	_, err := c.Send(ctx, "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"find_order","type":"go","description":"Finds an order by its number.","readOnly":true,"parameters":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}`)},
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"refund","type":"go","description":"Refunds an order.","auto":false,"idempotent":true,"parameters":{"type":"object","properties":{"order":{"type":"integer"},"amount":{"type":"number"}},"required":["order","amount"]}}`)},
		{Kind: events.AgentKind, Definition: events.JSON(`{"name":"support","description":"Answers customers of a shop.","type":"ai_human","reactor":"support","tools":["find_order","refund"]}`)},
	}})
	if err != nil {
		return err
	}
	for _, make := range []func(context.Context, *client.Client) error{fillGuide, fillFailed, fillOrder, fillRefund} {
		if err := make(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// begin makes a thread of the agent.
func begin(ctx context.Context, c *client.Client, key, title, user string) (string, error) {
	reply, err := c.Send(ctx, "", events.ResolveThread{Key: key, AgentID: DemoAgent, Title: title, UserID: user})
	if err != nil {
		return "", err
	}
	return reply.ThreadID, nil
}

func fillGuide(ctx context.Context, c *client.Client) error {
	id, err := begin(ctx, c, "docs:resume", "How to follow a thread", "grace")
	if err == nil {
		_, err = c.Ask(ctx, id, "How do I follow a thread from Go?")
	}
	return err
}

func fillFailed(ctx context.Context, c *client.Client) error {
	id, err := begin(ctx, c, "stock:kettle", "Is the kettle in stock?", "linus")
	if err != nil {
		return err
	}
	reply, err := c.Send(ctx, id, events.ReactThread{Text: new("Please ask the warehouse whether the kettle is in stock.")})
	if err != nil {
		return err
	}
	_, err = c.WaitRun(ctx, events.GetExecution{ThreadID: id, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq}})
	return err
}

func fillOrder(ctx context.Context, c *client.Client) error {
	id, err := begin(ctx, c, "order:42", "Where is my order?", "ada")
	if err != nil {
		return err
	}
	if _, err := c.Ask(ctx, id, "Where is my order 42?"); err != nil {
		return err
	}
	if _, err := c.Ask(ctx, id, "Thank you. How can I follow it myself?"); err != nil {
		return err
	}
	files := c.Files(id)
	for path, text := range map[string]string{
		"/orders/42.json":    "{\n  \"id\": 42,\n  \"status\": \"shipped\"\n}\n",
		"/notes/customer.md": "# Ada\n\nPrefers to be told by e-mail.\n",
	} {
		if _, err := files.WriteFile(ctx, path, []byte(text), "text/plain", events.WriteFileOptions{}); err != nil {
			return err
		}
	}
	photo, err := parcel()
	if err != nil {
		return err
	}
	if _, err := files.WriteFile(ctx, "/photos/parcel.png", photo, "image/png", events.WriteFileOptions{}); err != nil {
		return err
	}
	if _, err := c.Send(ctx, id, events.ForkThread{MessageIndex: new(int64(1)), Title: "Where is my order? (another answer)"}); err != nil {
		return err
	}
	for _, effect := range []events.ScheduleEffect{
		{Name: "ask_whether_it_arrived", Args: events.JSON(`{"order":42}`), DelayMs: new(int64(24 * 3600 * 1000))},
		{Name: "look_for_the_parcel", Args: events.JSON(`{"carrier":"Parcel Express"}`), Cron: "0 6 * * *"},
	} {
		if _, err := c.Send(ctx, id, effect); err != nil {
			return err
		}
	}
	return nil
}

func fillRefund(ctx context.Context, c *client.Client) error {
	id, err := begin(ctx, c, "order:42:refund", "Refund of a broken kettle", "ada")
	if err != nil {
		return err
	}
	reply, err := c.Send(ctx, id, events.ReactThread{Text: new("The kettle is broken. I want a refund.")})
	if err != nil {
		return err
	}
	waiting, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	_, err = c.WatchRun(waiting, events.GetExecution{ThreadID: id, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq}}, func(w client.Waiting) {
		if len(w.Approvals) > 0 {
			stop()
		}
	})
	if ctx.Err() == nil && waiting.Err() != nil { // it waits, as it is to
		return nil
	}
	return err
}

// parcel draws a parcel.
func parcel() ([]byte, error) {
	picture := image.NewRGBA(image.Rect(0, 0, 240, 180))
	for _, part := range []struct {
		where image.Rectangle
		color color.RGBA
	}{
		{picture.Bounds(), color.RGBA{233, 237, 243, 255}},
		{image.Rect(40, 50, 200, 150), color.RGBA{193, 145, 92, 255}},
		{image.Rect(40, 50, 200, 70), color.RGBA{171, 124, 74, 255}},
		{image.Rect(108, 50, 132, 150), color.RGBA{226, 205, 160, 255}},
		{image.Rect(148, 112, 188, 138), color.RGBA{250, 250, 250, 255}},
	} {
		draw.Draw(picture, part.where, image.NewUniform(part.color), image.Point{}, draw.Src)
	}
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	return b.Bytes(), err
}
