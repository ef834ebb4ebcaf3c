package pairs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// listed is what the pages of a list have together.
type listed struct {
	keys, values []string
	pages        int
}

// listAll reads all pages.
func listAll(t *testing.T, s *Store, q events.ListKV) (all listed) {
	t.Helper()
	for {
		page, err := s.List(t.Context(), acme, q)
		if err != nil {
			t.Fatal(err)
		}
		if q.Values && len(page.Values) != len(page.Keys) {
			t.Fatalf("%d keys have %d values", len(page.Keys), len(page.Values))
		}
		all.keys = append(all.keys, page.Keys...)
		for _, v := range page.Values {
			all.values = append(all.values, string(v))
		}
		all.pages++
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return all
		}
	}
}

// Pages of both orders have each key once, and with values the value of each, also where some are
// deleted, written again or null.
func TestPairs_ListValuesInBothOrders(t *testing.T) {
	a, b := two(t)
	var keys, values []string
	for i := range 75 {
		key, value := fmt.Sprintf("k%02d", i), fmt.Sprintf(`{"n":%d}`, i)
		set(t, a, "c", "b", key, `"before"`)
		set(t, a, "d", "b", key, value)
		keys, values = append(keys, key), append(values, value)
	}
	set(t, a, "n", "b", "k99", "null")
	keys, values = append(keys, "k99"), append(values, "null")
	set(t, a, "x", "other", "k10", `"other"`)
	if _, err := a.Delete(t.Context(), acme, "e", events.DeleteKV{Bucket: "b", Key: "k07"}); err != nil {
		t.Fatal(err)
	}
	keys, values = slices.Delete(keys, 7, 8), slices.Delete(values, 7, 8)
	for _, order := range []events.Order{"", "asc", "desc"} {
		if order == "desc" {
			slices.Reverse(keys)
			slices.Reverse(values)
		}
		got := listAll(t, b, events.ListKV{Bucket: "b", Prefix: "k", Order: order, Values: true, Limit: new(int64(40))})
		if !slices.Equal(got.keys, keys) || !slices.Equal(got.values, values) || got.pages != 2 {
			t.Errorf("%q: %d pages have %q, %q", order, got.pages, got.keys, got.values)
		}
		if got := listAll(t, b, events.ListKV{Bucket: "b", Order: order, Limit: new(int64(25))}); !slices.Equal(got.keys, keys) || got.values != nil || got.pages != 3 {
			t.Errorf("%q without values: %d pages have %q, %q", order, got.pages, got.keys, got.values)
		}
	}
	if got := listAll(t, b, events.ListKV{Bucket: "none", Values: true, Order: "desc"}); len(got.keys) > 0 {
		t.Errorf("an empty bucket has %q", got.keys)
	}
}

// A page with values is no larger than an answer may be.
func TestPairs_ListLargeValues(t *testing.T) {
	a, b := two(t)
	large := `"` + strings.Repeat("x", events.MaxKVValue-2) + `"`
	var keys []string
	for i := range 20 {
		key := fmt.Sprintf("k%02d", i)
		set(t, a, "c", "b", key, large)
		keys = append(keys, key)
	}
	got := listAll(t, b, events.ListKV{Bucket: "b", Values: true})
	if perPage := int(a.conn.Wire().MaxPayload()) / len(large); !slices.Equal(got.keys, keys) || got.pages < 20/perPage || got.pages > 20 {
		t.Errorf("%d pages have %q", got.pages, got.keys)
	}
	for i, v := range got.values {
		if v != large {
			t.Errorf("the value of %s has %d bytes", got.keys[i], len(v))
		}
	}
}

// However often a bucket is listed, no consumer stays: the server has at most a thousand of a stream.
func TestPairs_ListLeavesNoConsumer(t *testing.T) {
	a, b := two(t)
	set(t, a, "c", "b", "k", "1")
	for _, bucket := range []string{"b", "none"} {
		listAll(t, b, events.ListKV{Bucket: bucket})
	}
	if _, err := a.Delete(t.Context(), acme, "d", events.DeleteKV{Bucket: "b", Prefix: new("")}); err != nil {
		t.Fatal(err)
	}
	stream, err := a.conn.JetStream().Stream(t.Context(), assets.PairsStream(a.conn.Config().Names, acme))
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("%d consumers are left", n)
	}
}
