package threads_test

import (
	"context"
	"fmt"
	"os"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/threads"
)

// A session as in Amp: a conversation is forked to explore another way, handed off with a
// summary, refers to an earlier one, is cut back to its first answer, and is deleted.
func Example() {
	dir, err := os.MkdirTemp("", "skein")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	server, err := skein.Start(ctx, skein.Options{Store: dir, NATSListen: skein.None, HTTPListen: skein.None})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop(ctx)
	c, err := server.Client("acme")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := session(ctx, threads.New(c)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the thread "Flaky test" has 4 messages
	// the fork "Forked: Flaky test" has 3 messages, and is a fork at 1
	// the handoff begins with info: "Raise the timeout; the lock is fine." for "the fix"
	// the thread is the parent of: fork at 1, handoff at 3, mention at 3
	// cut back to 2 messages, it is the parent of: fork at 1
	// deleted, the thread is not there; the fork has 3 messages
}

func session(ctx context.Context, s *threads.Service) error {
	say := func(id, title string, texts ...string) error {
		_, _, err := s.Update(ctx, id, func(t *threads.Thread) error {
			if title != "" {
				t.Title = title
			}
			for _, text := range texts {
				t.Messages = append(t.Messages, threads.UserMessage(text))
			}
			return nil
		})
		return err
	}
	earlier, err := s.Create(ctx, "")
	if err != nil {
		return err
	}
	main, err := s.Create(ctx, "")
	if err != nil {
		return err
	}
	id := main.ID
	if err := say(id, "Flaky test", "Why does it fail?", "Is it the lock?", "Or the timeout?", "It is the timeout."); err != nil {
		return err
	}
	t, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	fmt.Printf("the thread %q has %d messages\n", t.Title, len(t.Messages))

	// Fork it after the second message, and explore there.
	fork, err := s.Fork(ctx, id, 1)
	if err != nil {
		return err
	}
	if err := say(fork, "", "Try a read lock."); err != nil {
		return err
	}
	if t, err = s.Get(ctx, fork); err != nil {
		return err
	}
	fmt.Printf("the fork %q has %d messages, and is a %s at %d\n", t.Title, len(t.Messages), t.Relationships[0].Type, *t.ForkPointIndex)

	// Hand it off: the new thread knows the summary alone.
	next, err := s.Handoff(ctx, id, threads.HandoffOptions{Summary: "Raise the timeout; the lock is fine.", Comment: "the fix"})
	if err != nil {
		return err
	}
	if t, err = s.Get(ctx, next); err != nil {
		return err
	}
	fmt.Printf("the handoff begins with %s: %q for %q\n", t.Messages[0].Role, *t.Messages[0].Content[0].Text, t.Relationships[0].Comment)

	// Refer to an earlier thread.
	if err := s.Mention(ctx, id, earlier.ID, "the same test"); err != nil {
		return err
	}
	related := func() (string, error) {
		t, err := s.Get(ctx, id)
		if err != nil {
			return "", err
		}
		list := ""
		for i, r := range t.Relationships {
			if i > 0 {
				list += ", "
			}
			list += fmt.Sprintf("%s at %d", r.Type, *r.MessageIndex)
		}
		return list, nil
	}
	list, err := related()
	if err != nil {
		return err
	}
	fmt.Println("the thread is the parent of:", list)

	// Cut it back: what was recorded after the cut is removed, on both threads.
	if err := s.Truncate(ctx, id, 1); err != nil {
		return err
	}
	if list, err = related(); err != nil {
		return err
	}
	if t, err = s.Get(ctx, id); err != nil {
		return err
	}
	fmt.Printf("cut back to %d messages, it is the parent of: %s\n", len(t.Messages), list)

	// Delete it: its fork goes on.
	if err := s.Delete(ctx, id); err != nil {
		return err
	}
	if _, err := s.Get(ctx, id); err == nil {
		return fmt.Errorf("thread %s is still there", id)
	}
	if t, err = s.Get(ctx, fork); err != nil {
		return err
	}
	fmt.Printf("deleted, the thread is not there; the fork has %d messages\n", len(t.Messages))
	return nil
}
