package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// named is a tool with only a spec.
type named runtime.ToolSpec

func (n *named) Spec() runtime.ToolSpec { return runtime.ToolSpec(*n) }
func (n *named) Call(context.Context, *runtime.ToolInput) (runtime.ToolResult, error) {
	return runtime.Done(events.JSON(`1`)), nil
}

func echo(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
	return &runtime.Reaction{}, nil
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := runtime.NewRegistry(nil)
	for _, name := range []string{"beta", "alpha"} {
		if err := errors.Join(r.AddTool(&named{Name: name}), r.AddReactor(name, runtime.ReactorFunc(echo))); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"alpha", "beta"}
	if !slices.Equal(r.Tools(), want) || !slices.Equal(r.Reactors(), want) {
		t.Errorf("%v %v", r.Tools(), r.Reactors())
	}
	if tool, err := r.Tool("alpha"); err != nil || tool.Spec().Name != "alpha" {
		t.Error(tool, err)
	}
	if reactor, err := r.Reactor("beta"); err != nil || reactor == nil {
		t.Error(reactor, err)
	}

	for name, c := range map[string]struct {
		err  error
		code events.Code
	}{
		"tool twice":       {r.AddTool(&named{Name: "alpha", Description: "another"}), events.AlreadyExists},
		"reactor twice":    {r.AddReactor("alpha", runtime.ReactorFunc(echo)), events.AlreadyExists},
		"nil tool":         {r.AddTool(nil), events.InvalidRequest},
		"nil in a tool":    {r.AddTool((*named)(nil)), events.InvalidRequest},
		"nil reactor":      {r.AddReactor("x", nil), events.InvalidRequest},
		"nil function":     {r.AddReactor("x", runtime.ReactorFunc(nil)), events.InvalidRequest},
		"no name":          {r.AddTool(&named{}), events.InvalidRequest},
		"a subject":        {r.AddReactor("a.b", runtime.ReactorFunc(echo)), events.InvalidRequest},
		"a wildcard":       {r.AddReactor(">", runtime.ReactorFunc(echo)), events.InvalidRequest},
		"a long name":      {r.AddTool(&named{Name: strings.Repeat("x", 65)}), events.InvalidRequest},
		"a bad schema":     {r.AddTool(&named{Name: "x", Parameters: events.JSON(`{"type":1}`)}), events.InvalidRequest},
		"a remote schema":  {r.AddTool(&named{Name: "x", Parameters: events.JSON(`{"$ref":"http://a/b"}`)}), events.InvalidRequest},
		"retries below 0":  {r.AddTool(&named{Name: "x", Retries: -2}), events.InvalidRequest},
		"timeout below 0":  {r.AddTool(&named{Name: "x", Timeout: -1}), events.InvalidRequest},
		"an unknown tool":  {second(r.Tool("x")), events.NotFound},
		"unknown reactor":  {second(r.Reactor("x")), events.NotFound},
		"a name to no one": {second(r.Tool("")), events.NotFound},
	} {
		if !errors.Is(c.err, &events.Error{Code: c.code}) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if tool, _ := r.Tool("alpha"); tool.Spec().Description != "" || len(r.Tools()) != 2 {
		t.Error("what was refused changed something")
	}
}

func second[T any](_ T, err error) error { return err }

func TestRegistry_ConcurrentUse(t *testing.T) {
	t.Parallel()
	r := runtime.NewRegistry(nil)
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("tool_%d", i)
				if r.AddTool(&named{Name: name}) == nil {
					won.Add(1)
				}
				if _, err := r.Tool(name); err != nil {
					t.Error(err)
				}
				_ = r.Tools()
			}
		})
	}
	all.Wait()
	if won.Load() != 50 {
		t.Errorf("%d of 50 names were added", won.Load())
	}
}
