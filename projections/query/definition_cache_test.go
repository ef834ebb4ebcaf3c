package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
)

// definitionsOf returns a reader, which follows the changes if follow is set.
func definitionsOf(h *running.House, cfg DefinitionsConfig, follow bool) *Definitions {
	h.Helper()
	d := NewDefinitions(h.NewLog(), cfg, zerolog.New(zerolog.NewTestWriter(h)).Level(zerolog.ErrorLevel))
	if !follow {
		return d
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Run(ctx)
	}()
	h.Cleanup(func() {
		cancel()
		<-done
	})
	h.Until(func() bool { return d.following() }, "the reader does not follow the bucket")
	return d
}

func (d *Definitions) following() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.follows
}

func (d *Definitions) size() (int, int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept.Len(), d.kept.Bytes()
}

// A definition is read once, and again when it has changed or was removed; a
// version that a run noted is found though it is not the present one.
func TestDefinitionsReader(t *testing.T) {
	for _, follow := range []bool{true, false} {
		t.Run(fmt.Sprint(follow), func(t *testing.T) {
			h := running.New(t)
			r, _ := h.Run(projections.Config{})
			d := definitionsOf(h, DefinitionsConfig{MaxAge: time.Hour}, follow)
			ctx := t.Context()
			if _, err := d.Get(ctx, readtest.Acme, events.AgentKind, "a"); !errors.Is(err, &events.Error{Code: events.NotFound}) {
				t.Errorf("before there is one: %v", err)
			}
			h.Apply(`{"definitions":[{"kind":"agent","definition":{"name":"a","type":"ai_human","reactor":"r1"}}]}`)
			h.AwaitRunner(r)
			h.Until(func() bool {
				one, version, err := LoadDefinition[events.AgentDefinition](ctx, d, readtest.Acme, events.AgentKind, "a")
				return err == nil && version == 1 && one.Reactor == "r1" && *one.WithDefaults().Limits.Iterations == 20
			}, "it does not appear")
			first, err := d.Get(ctx, readtest.Acme, events.AgentKind, "a")
			if err != nil {
				t.Fatal(err)
			}
			if again, err := d.Get(ctx, readtest.Acme, events.AgentKind, "a"); err != nil || (again == first) != follow {
				t.Errorf("kept: %v, want %v (%v)", again == first, follow, err)
			}
			h.Apply(`{"definitions":[{"kind":"agent","definition":{"name":"a","type":"ai_human","reactor":"r2"}}]}`)
			h.Until(func() bool {
				two, version, err := LoadDefinition[events.AgentDefinition](ctx, d, readtest.Acme, events.AgentKind, "a")
				return err == nil && version == 2 && two.Reactor == "r2"
			}, "its change does not appear")
			if was, err := d.Version(ctx, readtest.Acme, events.AgentKind, "a", 1); err != nil || was.Value.(events.AgentDefinition).Reactor != "r1" || was.Definition.Version != 1 {
				t.Errorf("%+v, %v", was, err)
			}
			if now, err := d.Version(ctx, readtest.Acme, events.AgentKind, "a", 2); err != nil || now.Value.(events.AgentDefinition).Reactor != "r2" {
				t.Errorf("%+v, %v", now, err)
			}
			h.Apply(`{"remove":[{"kind":"agent","name":"a"}]}`)
			h.Until(func() bool {
				_, err := d.Get(ctx, readtest.Acme, events.AgentKind, "a")
				return errors.Is(err, &events.Error{Code: events.NotFound})
			}, "its end does not appear")
			if was, err := d.Version(ctx, readtest.Acme, events.AgentKind, "a", 2); err != nil || was.Definition.Version != 2 {
				t.Errorf("a version of one that was removed: %+v, %v", was, err)
			}
			for _, version := range []int64{0, 3, 4} {
				if _, err := d.Version(ctx, readtest.Acme, events.AgentKind, "a", version); !errors.Is(err, &events.Error{Code: events.NotFound}) {
					t.Errorf("version %d: %v", version, err)
				}
			}
			for _, name := range []string{"", "a b", "*", ">", "a.>"} {
				if _, err := d.Get(ctx, readtest.Acme, events.AgentKind, name); !errors.Is(err, &events.Error{Code: events.NotFound}) {
					t.Errorf("%q: %v", name, err)
				}
			}
			if _, err := d.Get(ctx, "*", events.AgentKind, "a"); !errors.Is(err, &events.Error{Code: events.NotFound}) {
				t.Errorf("a tenant that cannot be: %v", err)
			}
			if _, _, err := LoadDefinition[events.ModelDefinition](ctx, d, readtest.Acme, events.AgentKind, "a"); err == nil {
				t.Error("an agent is no model")
			}
		})
	}
}

// The cache is bounded, and right while definitions change all the time.
func TestDefinitionsReaderIsBoundedAndTrue(t *testing.T) {
	h := running.New(t)
	r, _ := h.Run(projections.Config{})
	const limit = 64 << 10
	d := definitionsOf(h, DefinitionsConfig{CacheBytes: limit, MaxAge: time.Hour}, true)
	want := map[string]string{}
	for round := range 12 {
		var list []string
		for i := range 8 {
			name, text := fmt.Sprint("p", (round*3+i)%20), strings.Repeat(fmt.Sprint(round), 1000+i)
			want[name] = text
			list = append(list, fmt.Sprintf(`{"kind":"prompt","name":%q,"definition":{"text":%q}}`, name, text))
		}
		h.Apply(`{"definitions":[` + strings.Join(list, ",") + `]}`)
		h.AwaitRunner(r)
		for name, text := range want {
			h.Until(func() bool {
				p, _, err := LoadDefinition[events.PromptDefinition](t.Context(), d, readtest.Acme, events.PromptKind, name)
				return err == nil && p.Text == text
			}, name+" is not what it was made")
		}
		if n, bytes := d.size(); bytes > limit || n == 0 {
			t.Errorf("%d definitions are kept, %d bytes", n, bytes)
		}
	}
}

// A reader that lost its connection forgets its cache, and follows again. One without
// notifications reads again after a while.
func TestDefinitionsReaderForgets(t *testing.T) {
	h := running.New(t)
	r, _ := h.Run(projections.Config{})
	d := definitionsOf(h, DefinitionsConfig{MaxAge: time.Hour}, true)
	h.Apply(`{"definitions":[{"kind":"prompt","name":"p","definition":{"text":"one"}}]}`)
	h.AwaitRunner(r)
	h.Until(func() bool {
		_, _ = d.Get(t.Context(), readtest.Acme, events.PromptKind, "p")
		n, _ := d.size()
		return n == 1
	}, "nothing is kept")
	if err := d.source.log.Conn().ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	h.Until(func() bool { n, _ := d.size(); return n == 0 }, "what was kept is kept over a lost connection")
	h.Until(d.following, "it does not follow again")

	now := time.Now()
	old := NewDefinitions(h.NewLog(), DefinitionsConfig{MaxAge: time.Minute, Now: func() time.Time { return now }}, zerolog.Nop())
	old.forget(true) // told of nothing
	get := func() string {
		p, _, err := LoadDefinition[events.PromptDefinition](t.Context(), old, readtest.Acme, events.PromptKind, "p")
		if err != nil {
			t.Fatal(err)
		}
		return p.Text
	}
	get()
	h.Apply(`{"definitions":[{"kind":"prompt","name":"p","definition":{"text":"two"}}]}`)
	h.AwaitRunner(r)
	if got := get(); got != "one" {
		t.Errorf("%s was read though one was kept", got)
	}
	now = now.Add(2 * time.Minute)
	if got := get(); got != "two" {
		t.Errorf("%s is kept for ever", got)
	}
}

// A missing definition is known to be missing until a notification. A reader that knows
// what was defined reads again without one.
func TestDefinitionsReaderKnowsWhatIsNotThere(t *testing.T) {
	h := running.New(t)
	r, _ := h.Run(projections.Config{})
	var defined, shown uint64
	told := definitionsOf(h, DefinitionsConfig{MaxAge: time.Hour}, true)
	untold := NewDefinitions(h.NewLog(), DefinitionsConfig{
		MaxAge: time.Hour, Defined: func(string) uint64 { return defined }, Shown: func() uint64 { return shown },
	}, zerolog.Nop())
	untold.forget(true) // told of nothing
	readers := []*Definitions{told, untold}
	for _, d := range readers {
		if d.Absent(readtest.Acme, events.AgentKind, "a") {
			t.Error("it is known not to be there before anybody has looked")
		}
		if _, err := d.Get(t.Context(), readtest.Acme, events.AgentKind, "a"); !errors.Is(err, &events.Error{Code: events.NotFound}) {
			t.Error(err)
		}
		if !d.Absent(readtest.Acme, events.AgentKind, "a") || d.Absent(readtest.Acme, events.AgentKind, "b") || d.Absent(readtest.Acme, events.ToolKind, "a") {
			t.Error("what was looked for, and nothing else, is known not to be there")
		}
	}
	for version, text := range []string{"r1", "r2"} {
		h.Apply(fmt.Sprintf(`{"definitions":[{"kind":"agent","definition":{"name":"a","type":"ai_human","reactor":%q}}]}`, text))
		h.AwaitRunner(r)
		defined++
		for i, d := range readers {
			h.Until(func() bool { return !d.Absent(readtest.Acme, events.AgentKind, "a") }, "it is still said not to be there")
			h.Until(func() bool {
				a, v, err := LoadDefinition[events.AgentDefinition](t.Context(), d, readtest.Acme, events.AgentKind, "a")
				return err == nil && v == int64(version+1) && a.Reactor == text
			}, fmt.Sprintf("reader %d does not give %s", i, text))
		}
		shown = defined // from here on what is read is kept
		first, err := untold.Get(t.Context(), readtest.Acme, events.AgentKind, "a")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := untold.Get(t.Context(), readtest.Acme, events.AgentKind, "a"); err != nil || again != first {
			t.Errorf("it is read again and again: %v", err)
		}
	}
}

func BenchmarkDefinitionsGet(b *testing.B) {
	h := running.New(b)
	r, _ := h.Run(projections.Config{})
	h.Apply(`{"definitions":[{"kind":"agent","definition":{"name":"a","type":"ai_human","reactor":"r1"}}]}`)
	h.AwaitRunner(r)
	for name, follow := range map[string]bool{"kept": true, "read": false} {
		d := definitionsOf(h, DefinitionsConfig{}, follow)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Get(b.Context(), readtest.Acme, events.AgentKind, "a"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
