package pairs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

const acme = "acme"

// open returns a store on a connection of its own, like that of another process.
func open(t *testing.T, nc *nats.Conn, cfg Config) *Store {
	t.Helper()
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return On(log.Streams(), cfg)
}

// two returns the stores of two processes on one server.
func two(t *testing.T) (*Store, *Store) {
	t.Helper()
	server := natstest.Start(t)
	return open(t, natstest.Connect(t, server), Config{}), open(t, natstest.Connect(t, server), Config{})
}

func set(t *testing.T, s *Store, id, bucket, key, value string) *events.Reply {
	t.Helper()
	r, err := s.Set(t.Context(), acme, id, events.SetKV{Bucket: bucket, Key: key, Value: events.JSON(value)})
	if err != nil {
		t.Fatalf("set %q of %q: %v", key, bucket, err)
	}
	return r
}

// get returns the value of a key, "-" if it has none.
func get(t *testing.T, s *Store, bucket, key string) string {
	t.Helper()
	e, err := s.Get(t.Context(), acme, events.GetKV{Bucket: bucket, Key: key})
	if err != nil {
		t.Fatalf("get %q of %q: %v", key, bucket, err)
	}
	if !e.Exists {
		return "-"
	}
	return string(e.Value)
}

func keys(t *testing.T, s *Store, q events.ListKV) []string {
	t.Helper()
	list, err := s.List(t.Context(), acme, q)
	if err != nil {
		t.Fatal(err)
	}
	return list.Keys
}

func wantCode(t *testing.T, err error, code events.Code) {
	t.Helper()
	if err == nil || events.AsError(err).Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// AG-41, AG-45: any text is a key, and no two keys are one.
func TestPairs_AnyTextIsAKey(t *testing.T) {
	a, b := two(t)
	names := []string{
		"chat_T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162", "a.b", "a", "a ", " ", ".", "*", ">", "a.>", "$KV.x", "ü", "日本", "\x00", "a\nb", "A", "%2E",
		strings.Repeat("x", events.MaxKVKey), "2a", "61",
	}
	for i, name := range names {
		set(t, a, fmt.Sprint(i), name[:min(len(name), 100)], name, fmt.Sprint(i))
		set(t, a, fmt.Sprint(i), "all", name, fmt.Sprint(i))
	}
	for i, name := range names {
		if got := get(t, b, name[:min(len(name), 100)], name); got != fmt.Sprint(i) {
			t.Errorf("%q is %s, want %d", name, got, i)
		}
	}
	if got := keys(t, b, events.ListKV{Bucket: "all"}); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
		t.Errorf("the keys are %q", got)
	}
	_, err := a.Set(t.Context(), acme, "x", events.SetKV{Bucket: "b", Key: strings.Repeat("x", events.MaxKVKey+1), Value: events.JSON("1")})
	wantCode(t, err, events.PayloadTooLarge)
	_, err = a.Set(t.Context(), acme, "x", events.SetKV{Bucket: strings.Repeat("ü", 65), Key: "x", Value: events.JSON("1")})
	wantCode(t, err, events.PayloadTooLarge)
}

func TestPairs_ValuesUpToTheLimit(t *testing.T) {
	a, b := two(t)
	large := `"` + strings.Repeat("x", events.MaxKVValue-2) + `"`
	set(t, a, "1", "b", "k", large)
	if get(t, b, "b", "k") != large {
		t.Error("the largest value is not what was set")
	}
	_, err := a.Set(t.Context(), acme, "2", events.SetKV{Bucket: "b", Key: "k", Value: events.JSON(large + " ")})
	wantCode(t, err, events.PayloadTooLarge)
}

func TestPairs_OfTheirTenant(t *testing.T) {
	a, b := two(t)
	set(t, a, "1", "b", "k", "1")
	e, err := b.Get(t.Context(), "other", events.GetKV{Bucket: "b", Key: "k"})
	if err != nil || e.Exists {
		t.Errorf("another tenant reads %v, %v", e, err)
	}
	list, err := b.List(t.Context(), "other", events.ListKV{Bucket: "b"})
	if err != nil || len(list.Keys) > 0 {
		t.Errorf("another tenant lists %v, %v", list, err)
	}
}

// A repeat of a set returns the first reply and changes nothing, on any process, also after
// other commands have set or deleted the key.
func TestPairs_RepeatedCommands(t *testing.T) {
	a, b := two(t)
	first := set(t, a, "c-1", "b", "k", "1")
	set(t, b, "c-2", "b", "k", "2")
	if again := set(t, b, "c-1", "b", "k", "1"); again.Version != first.Version {
		t.Errorf("first version %d, then %d", first.Version, again.Version)
	}
	if got := get(t, a, "b", "k"); got != "2" {
		t.Errorf("the repeat made it %s", got)
	}
	gone, err := a.Delete(t.Context(), acme, "c-3", events.DeleteKV{Bucket: "b", Key: "k"})
	if err != nil || gone.Result == nil || gone.Result.Deleted != 1 {
		t.Fatalf("deleted %+v, %v", gone, err)
	}
	set(t, b, "c-2", "b", "k", "2")
	if got := get(t, a, "b", "k"); got != "-" {
		t.Errorf("the repeat brought back %s", got)
	}
	set(t, b, "c-4", "b", "k", "4")
	again, err := b.Delete(t.Context(), acme, "c-3", events.DeleteKV{Bucket: "b", Key: "k"})
	if err != nil || again.Version != gone.Version || again.Result == nil || again.Result.Deleted != 1 {
		t.Errorf("first %+v, then %+v, %v", gone, again, err)
	}
	if got := get(t, a, "b", "k"); got != "4" {
		t.Errorf("the repeated deletion left %s", got)
	}
	for i := range rememberedCommands - 1 {
		set(t, a, fmt.Sprint("more-", i), "b", "k", "5")
	}
	set(t, a, "c-4", "b", "k", "4")
	if got := get(t, a, "b", "k"); got != "5" {
		t.Errorf("the repeat after %d others made it %s", rememberedCommands-1, got)
	}
}

// Of many writers at once each is executed once, on whichever process, and also on the first
// use of the tenant's bucket.
func TestPairs_ManyWriters(t *testing.T) {
	a, b := two(t)
	var wg sync.WaitGroup
	const writers = 12
	for i := range writers {
		s := []*Store{a, b}[i%2]
		wg.Go(func() {
			for range 2 { // the second is a repeat
				if _, err := s.Set(t.Context(), acme, fmt.Sprint(i), events.SetKV{Bucket: "b", Key: "k", Value: events.JSON(fmt.Sprint(i))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	m, _, err := a.newest(t.Context(), acme, "b", "k")
	if err != nil {
		t.Fatal(err)
	}
	done := strings.Fields(m.Header.Get(headerCommands))
	last, err := a.conn.LastSeq(t.Context(), assets.PairsStream(a.conn.Config().Names, acme))
	if err != nil || len(done) != writers || last != writers {
		t.Errorf("%d commands are remembered, %d messages were written, %v", len(done), last, err)
	}
}

// AG-42: with ttlSeconds a key is gone by itself; one that is set again without lives on.
func TestPairs_TTL(t *testing.T) {
	a, b := two(t)
	brief := func(id, key string) {
		t.Helper()
		if _, err := a.Set(t.Context(), acme, id, events.SetKV{Bucket: "b", Key: key, Value: events.JSON("1"), TTLSeconds: 1}); err != nil {
			t.Fatal(err)
		}
	}
	brief("1", "kept")
	set(t, b, "2", "b", "kept", "2")
	brief("3", "gone")
	natstest.Eventually(t, "the key is gone", func() bool { return get(t, b, "b", "gone") == "-" })
	if got := get(t, a, "b", "kept"); got != "2" {
		t.Errorf("what was set without a time is %s", got)
	}
	if got := keys(t, a, events.ListKV{Bucket: "b"}); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("the keys are %q", got)
	}
	set(t, a, "4", "b", "gone", "4")
	if got := get(t, b, "b", "gone"); got != "4" {
		t.Errorf("set again it is %s", got)
	}
}

func TestPairs_ListInPages(t *testing.T) {
	a, b := two(t)
	var all []string
	for i := range 25 {
		key := fmt.Sprintf("chat_%02d", i)
		set(t, a, "c", "b", key, "1")
		all = append(all, key)
	}
	set(t, a, "c", "b", "other", "1")
	if _, err := a.Delete(t.Context(), acme, "d", events.DeleteKV{Bucket: "b", Key: "chat_07"}); err != nil {
		t.Fatal(err)
	}
	all = slices.Delete(all, 7, 8)
	var got []string
	q := events.ListKV{Bucket: "b", Prefix: "chat_", Limit: new(int64(10))}
	for pages := 1; ; pages++ {
		page, err := b.List(t.Context(), acme, q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Keys...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if !slices.Equal(got, all) {
		t.Errorf("the pages have %q, want %q", got, all)
	}
	if got := keys(t, a, events.ListKV{Bucket: "none"}); len(got) > 0 {
		t.Errorf("an empty bucket has %q", got)
	}
	for _, cursor := range []string{"%%%", "b3RoZXI"} { // the second is of another prefix
		_, err := a.List(t.Context(), acme, events.ListKV{Bucket: "b", Prefix: "chat_", Cursor: cursor})
		wantCode(t, err, events.InvalidRequest)
	}
}

func TestPairs_DeletedByPrefix(t *testing.T) {
	a, b := two(t)
	fill := func() {
		for _, key := range []string{"a1", "a2", "b1"} {
			set(t, a, "fill", "x", key, `"secret-`+key+`"`)
			set(t, a, "fill", "y", key, "1")
		}
	}
	fill()
	prefix, every := "a", ""
	r, err := b.Delete(t.Context(), acme, "d-1", events.DeleteKV{Bucket: "x", Prefix: &prefix})
	if err != nil || r.Result == nil || r.Result.Deleted != 2 {
		t.Fatalf("deleted %+v, %v", r, err)
	}
	if got := keys(t, a, events.ListKV{Bucket: "x"}); !slices.Equal(got, []string{"b1"}) {
		t.Errorf("left are %q", got)
	}
	// Erased by its bucket, and then all of the tenant: no message is left, not even a marker.
	if _, err := b.Delete(t.Context(), acme, "d-2", events.DeleteKV{Bucket: "x", Prefix: &every, Erase: true}); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, a, events.ListKV{Bucket: "y"}); len(got) != 3 {
		t.Errorf("the other bucket has %q", got)
	}
	if _, err := b.Delete(t.Context(), acme, "d-3", events.DeleteKV{Prefix: &every, Erase: true}); err != nil {
		t.Fatal(err)
	}
	stream, err := a.conn.JetStream().Stream(t.Context(), assets.PairsStream(a.conn.Config().Names, acme))
	if err != nil || stream.CachedInfo().State.Msgs != 0 {
		t.Errorf("the stream holds %+v, %v", stream.CachedInfo().State, err)
	}
	for name, d := range map[string]events.DeleteKV{
		"neither": {Bucket: "x"}, "both": {Bucket: "x", Key: "a", Prefix: &prefix}, "a key of no bucket": {Key: "a"}, "a prefix of no bucket": {Prefix: &prefix},
	} {
		_, err := a.Delete(t.Context(), acme, "d-4", d)
		var e *events.Error
		if !errors.As(err, &e) || e.Code != events.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A tenant stores no more than its limit; what it has it may replace by less, and delete.
func TestPairs_LimitOfTheTenant(t *testing.T) {
	server := natstest.Start(t)
	s := open(t, natstest.Connect(t, server), Config{MaxBytes: 64 << 10})
	large := `"` + strings.Repeat("x", 40<<10) + `"`
	set(t, s, "1", "b", "k", large)
	_, err := s.Set(t.Context(), acme, "2", events.SetKV{Bucket: "b", Key: "l", Value: events.JSON(large)})
	wantCode(t, err, events.PayloadTooLarge)
	set(t, s, "3", "b", "k", large)
	if _, err := s.Set(t.Context(), "other", "4", events.SetKV{Bucket: "b", Key: "l", Value: events.JSON(large)}); err != nil {
		t.Error(err)
	}
	if _, err := s.Delete(t.Context(), acme, "5", events.DeleteKV{Bucket: "b", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	set(t, s, "6", "b", "l", large)
}
