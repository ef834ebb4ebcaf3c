package skein_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// SA-1, SA-2, SA-3: each thread runs an agent of its own, which sees the thread's messages and no
// others; so it is with messages that are read, and with files at one path, also where threads
// are used at the same time.
func TestThreads_AreIsolated(t *testing.T) {
	s := skeintest.Start(t)
	var names []string
	for i := range 4 {
		name := fmt.Sprint("agent", i)
		names = append(names, name)
		s.Must(s.Reactor(name, func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
			var seen []string
			for _, item := range in.Items {
				if item.Role == events.User {
					seen = append(seen, events.TextOfParts(item.Content))
				}
			}
			return skein.Answer(name + " has seen " + strings.Join(seen, ", ")), nil
		}))
	}
	c := s.Client("acme")
	threads := map[string]string{} // by agent
	for _, name := range names {
		made, err := c.Send(t.Context(), "", events.CreateThread{AgentID: name})
		s.Must(err)
		threads[name] = made.ThreadID
	}
	var using sync.WaitGroup
	for _, name := range names {
		using.Go(func() {
			files := c.Files(threads[name])
			for n := range 3 {
				if _, err := c.Ask(t.Context(), threads[name], fmt.Sprint(name, "-", n)); err != nil {
					t.Error(err)
				}
				if _, err := files.WriteFile(t.Context(), "/notes.txt", []byte(fmt.Sprint(name, n)), "", client.WriteFileOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	using.Wait()
	c, err := c.UpToDate(t.Context()) // its reads show all that was written
	s.Must(err)
	for _, name := range names {
		list, err := client.Read(t.Context(), c, events.ListItems{ThreadID: threads[name]})
		s.Must(err)
		var texts []string
		for _, item := range list.Items {
			texts = append(texts, events.TextOfParts(item.Content))
		}
		said := func(n int) string { return fmt.Sprint(name, "-", n) }
		want := []string{
			said(0), name + " has seen " + said(0),
			said(1), name + " has seen " + said(0) + ", " + said(1),
			said(2), name + " has seen " + said(0) + ", " + said(1) + ", " + said(2),
		}
		if strings.Join(texts, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(texts, "\n"), strings.Join(want, "\n"))
		}
		data, err := c.Files(threads[name]).ReadFile(t.Context(), "/notes.txt")
		s.Must(err)
		if string(data) != name+"2" {
			t.Errorf("the file of %s has %q", name, data)
		}
	}
}
