package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// A process that says nothing for two seconds owns nothing more; one that announces itself again
// does.
func TestPeers_Silent(t *testing.T) {
	var told []string
	p := newPeers(events.DefaultNames(), func(m *nats.Msg) { told = append(told, string(m.Data)) }, func(int) {})
	now := time.Unix(1000, 0)
	announced := func(body string) { p.announced(&nats.Msg{Data: []byte(body)}, now) }
	owners := func() []string {
		got := map[string]bool{}
		for _, key := range keys(100) {
			got[p.owner(key)] = true
		}
		return slices.Sorted(func(yield func(string) bool) {
			for id := range got {
				if !yield(strings.Replace(id, p.self, "self", 1)) {
					return
				}
			}
		})
	}
	want := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if got := owners(); !slices.Equal(got, want) {
			t.Errorf("%s: the owners are %v, want %v", when, got, want)
		}
	}
	want("at first", "self")
	announced(`{"id":"b"}`)
	announced(`{"id":"c"}`)
	want("with two more", "self", "b", "c")
	now = now.Add(aliveFor - time.Millisecond)
	announced(`{"id":"b"}`)
	p.announce(now, true)
	want("just before the time is over", "self", "b", "c")
	now = now.Add(time.Millisecond)
	p.announce(now, true)
	want("with one silent", "self", "b")
	announced(`{"id":"c"}`)
	want("with it back", "self", "b", "c")
	announced(`{"id":"b","leaving":true}`)
	want("with one gone", "self", "c")
	for _, bad := range []string{``, `{`, `{"id":""}`, `{"id":"a.b"}`, `{"id":">"}`, `{"id":"` + strings.Repeat("x", 33) + `"}`} {
		announced(bad)
	}
	want("after what is no announcement", "self", "c")
	for i := range 2 * mostPeers {
		announced(fmt.Sprintf(`{"id":"x%d"}`, i))
	}
	if n := len(*p.owners.Load()); n != mostPeers+1 {
		t.Errorf("%d own something, want at most %d and this one", n, mostPeers)
	}
	p.announce(now, false)
	want("when it is not connected", "self")
	// One that cannot answer owns nothing for some time, and says so.
	announced(`{"id":"b"}`)
	told = nil
	p.ail(now)
	want("ailing", "b")
	now = now.Add(ailingFor - time.Millisecond)
	announced(`{"id":"c"}`)
	p.announce(now, true)
	now = now.Add(time.Millisecond)
	p.announce(now, true)
	want("well again", "c", "self")
	ails, serves := `{"id":"`+p.self+`","ailing":true}`, `{"id":"`+p.self+`"}`
	if !slices.Equal(told, []string{ails, ails, ails, serves}) {
		t.Errorf("the others were told %q", told)
	}
}

// When a process comes, only keys that it owns change hands.
func TestPeers_FewKeysMove(t *testing.T) {
	p := newPeers(events.DefaultNames(), func(*nats.Msg) {}, func(int) {})
	now := time.Unix(1000, 0)
	for _, id := range []string{"b", "c"} {
		p.announced(&nats.Msg{Data: []byte(`{"id":"` + id + `"}`)}, now)
	}
	before := map[string]string{}
	for _, key := range keys(4000) {
		before[key] = p.owner(key)
	}
	p.announced(&nats.Msg{Data: []byte(`{"id":"d"}`)}, now)
	moved := 0
	for key, was := range before {
		if is := p.owner(key); is != was {
			moved++
			if is != "d" {
				t.Fatalf("%s moved from %s to %s", key, was, is)
			}
		}
	}
	if moved < 800 || moved > 1200 {
		t.Errorf("%d of 4000 keys moved to the fourth process, want about a fourth", moved)
	}
}
