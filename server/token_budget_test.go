package server

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

func TestParse(t *testing.T) {
	l, err := parseTokenLimits([]string{"1000", "acme=5", "globex=0"})
	if err != nil || l.of("acme") != 5 || l.of("globex") != 0 || l.of("initech") != 1000 || l.None() {
		t.Errorf("%+v %v", l, err)
	}
	if l, err := parseTokenLimits([]string{"0", "acme=0"}); err != nil || !l.None() {
		t.Errorf("%+v %v", l, err)
	}
	for _, entry := range []string{"", "x", "-1", "acme=", "acme=-1", "a.b=1", "=1", "1e6"} {
		if _, err := parseTokenLimits([]string{entry}); err == nil {
			t.Errorf("%q was accepted", entry)
		}
	}
}

func TestBudget_IsCountedOverRestartsAndByDay(t *testing.T) {
	server := natstest.Start(t)
	day := time.Date(2026, 2, 20, 23, 59, 59, 0, time.UTC)
	open := func() *tokenBudget {
		log, err := eventlog.Open(natstest.Connect(t, server), eventlog.Config{Patience: 5 * time.Minute}, zerolog.Nop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(log.Close)
		b, err := openBudget(t.Context(), log, tokenLimits{All: 1000, Tenants: map[string]int64{"free": 0}}, func() time.Time { return day })
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	spend := func(b *tokenBudget, tenant, id string, tokens int64) {
		t.Helper()
		if err := b.Spend(t.Context(), tenant, id, tokens); err != nil {
			t.Fatal(err)
		}
	}
	full := func(b *tokenBudget, tenant string) bool {
		t.Helper()
		err := b.Check(t.Context(), tenant)
		if err != nil && !errors.Is(err, &events.Error{Code: events.QueueFull}) {
			t.Fatal(err)
		}
		return err != nil
	}
	b := open()
	if full(b, "acme") {
		t.Error("nothing was used yet")
	}
	spend(b, "acme", "step-1", 600)
	spend(b, "acme", "step-1", 600) // again, with the same id
	spend(b, "globex", "step-1", 999)
	spend(b, "acme", "step-2", -5)
	if n, err := b.Used(t.Context(), "acme"); err != nil || n != 600 || full(b, "acme") || full(b, "globex") {
		t.Errorf("%d were used: %v", n, err)
	}
	b = open() // another process
	var all sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		all.Go(func() { spend(b, "acme", id, 100) })
	}
	all.Wait()
	if n, err := b.Used(t.Context(), "acme"); err != nil || n != 1000 || !full(b, "acme") || full(b, "globex") {
		t.Errorf("%d were used: %v", n, err)
	}
	spend(b, "free", "step-1", 1<<40)
	if full(b, "free") {
		t.Error("a tenant without a limit has used it")
	}
	day = day.Add(time.Second)
	if full(b, "acme") {
		t.Error("the next day's tokens are used before it began")
	}
}
