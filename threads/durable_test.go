package threads_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
	"github.com/skein-threads/skein/threads"
)

// AM-57, AM-60..AM-63, AM-65, AM-103..AM-105, C-21: nothing is dirty and nothing is flushed. When
// Update returns, the log has the change, of any number of threads at once, also of one that
// nobody holds.
func TestUpdate_NothingToFlush(t *testing.T) {
	server := skeintest.Start(t)
	s, other := threads.New(server.Client("acme")), server.Client("acme")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			made, err := s.Create(t.Context(), "")
			if err != nil {
				t.Error(err)
				return
			}
			title := fmt.Sprint("title ", i)
			got, _, err := s.Update(t.Context(), made.ID, func(t *threads.Thread) error { t.Title = title; return nil })
			if err != nil || got.V != 1 {
				t.Errorf("updated to %+v: %v", got, err)
				return
			}
			list, err := client.Read(t.Context(), other, events.ListEvents{ThreadID: made.ID}) // reads the log
			if err != nil {
				t.Error(err)
				return
			}
			if last := list.Events[len(list.Events)-1]; !strings.Contains(string(last), title) {
				t.Errorf("the log of %s ends with %s", made.ID, last)
			}
		})
	}
	all.Wait()
}

// AM-2, AM-20..AM-24, AM-49, AM-52: threads survive a restart of the process, with their
// relationships and their env, which a fork copies whole. A fork begins at v 0, and its parent's v goes
// up by one.
func TestThreads_SurviveARestart(t *testing.T) {
	dir := t.TempDir()
	start := func() (*skein.Server, *threads.Service) {
		server, err := skein.Start(t.Context(), skein.Options{Store: dir, NATSListen: skein.None, HTTPListen: skein.None})
		if err != nil {
			t.Fatal(err)
		}
		c, err := server.Client("acme")
		if err != nil {
			t.Fatal(err)
		}
		return server, threads.New(c)
	}
	server, s := start()
	id := must(s.Create(t.Context(), ""))(t).ID
	const env = `{"initial":{"trees":[{"uri":"file:///src","displayName":"src","repository":{"type":"git","url":"https://example.com/x","ref":"main","sha":"abc"}}],"tags":["model:gpt-5"]}}`
	before, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
		t.Env, t.Messages = events.JSON(env), append(t.Messages, threads.UserMessage("one"), threads.UserMessage("two"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fork := must(s.Fork(t.Context(), id, 0))(t)
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	server, s = start()
	defer server.Stop(t.Context()) //nolint:errcheck // the test is over
	main, child := must(s.Get(t.Context(), id))(t), must(s.Get(t.Context(), fork))(t)
	if len(main.Messages) != 2 || string(main.Env) != env || main.V != before.V+1 {
		t.Errorf("the thread is %+v", main)
	}
	if len(child.Messages) != 1 || string(child.Env) != env || child.V != 0 || child.OriginThreadID != id || child.ForkPointIndex == nil || *child.ForkPointIndex != 0 || child.MainThreadID != "" {
		t.Errorf("the fork is %+v", child)
	}
}
