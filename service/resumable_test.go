package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// takeKept returns what is kept under a key, 0 if nothing is.
func takeKept(t *testing.T, k *Resumable[string, int], key string) int {
	t.Helper()
	v, err := k.Take(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// has reports what is kept under a key, and leaves it there.
func has(t *testing.T, k *Resumable[string, int], key string, want int) {
	t.Helper()
	v := takeKept(t, k, key)
	if v != want {
		t.Errorf("%s: %d, want %d", key, v, want)
	}
	if k.Drop(key); v != 0 {
		takeKept(t, k, key)
		k.Put(key, v, int64(v))
	}
}

// A value has one user at a time: the next one waits, and goes on with what the first has made.
func TestTake_WaitsForTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewResumable[string, int](ResumableBounds{})
		takeKept(t, k, "a")
		has(t, k, "b", 0) // another value is free
		ended, end := context.WithCancel(t.Context())
		got := make(chan int, 1)
		go func() { got <- takeKept(t, k, "a") }()
		gaveUp := make(chan error, 1)
		go func() {
			_, err := k.Take(ended, "a")
			gaveUp <- err
		}()
		synctest.Wait()
		if len(got)+len(gaveUp) > 0 {
			t.Fatal("two have the same value")
		}
		end()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("one that gave up: %v", err)
		}
		k.Put("a", 7, 1)
		if v := <-got; v != 7 {
			t.Errorf("the next one has %d", v)
		}
		k.Drop("a")
		has(t, k, "a", 0)
	})
}

// What was put back first goes first when there is too much, and the last one always stays.
func TestPut_KeepsWithinItsBounds(t *testing.T) {
	for name, test := range map[string]struct {
		bounds ResumableBounds
		want   map[string]int
	}{
		"no bounds": {ResumableBounds{}, map[string]int{"a": 3, "b": 4, "c": 5}},
		"values":    {ResumableBounds{Values: 2}, map[string]int{"a": 0, "b": 4, "c": 5}},
		"weight":    {ResumableBounds{Weight: 9}, map[string]int{"a": 0, "b": 4, "c": 5}},
		"less":      {ResumableBounds{Weight: 8}, map[string]int{"a": 0, "b": 0, "c": 5}},
		"one":       {ResumableBounds{Weight: 4}, map[string]int{"a": 0, "b": 0, "c": 5}},
	} {
		k := NewResumable[string, int](test.bounds)
		for v, key := range []string{"a", "b", "c"} {
			takeKept(t, k, key)
			k.Put(key, v+3, int64(v+3))
		}
		for key, want := range test.want {
			if got := takeKept(t, k, key); got != want {
				t.Errorf("%s: %s: %d, want %d", name, key, got, want)
			}
		}
	}
}

// A value is forgotten when its time is over, which begins again when it is put back.
func TestPut_ForgetsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewResumable[string, int](ResumableBounds{For: time.Minute})
		takeKept(t, k, "a")
		k.Put("a", 1, 1)
		time.Sleep(40 * time.Second)
		has(t, k, "a", 1)
		time.Sleep(40 * time.Second)
		has(t, k, "a", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		has(t, k, "a", 0)
	})
}
