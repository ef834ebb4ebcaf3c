package lru

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Against a model that is a list of keys, the one used last in front.
func TestCache_MatchesModel(t *testing.T) {
	type kept struct {
		key, value int
		bytes      int64
	}
	const most = 100
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, model := New[int, int](most), []kept(nil)
		find := func(key int) int { return slices.IndexFunc(model, func(k kept) bool { return k.key == key }) }
		drop := func(at int) (k kept) {
			k = model[at]
			model = slices.Delete(model, at, at+1)
			return k
		}
		total := func() (n int64) {
			for _, k := range model {
				n += k.bytes
			}
			return n
		}
		for step := range 300 {
			key, bytes := r.IntN(12), r.Int64N(most/3)
			if r.IntN(50) == 0 {
				bytes = most + 1
			}
			at := find(key)
			switch r.IntN(10) {
			case 0:
				c.Drop(key)
				if at >= 0 {
					drop(at)
				}
			case 1:
				c.Grow(key, bytes)
				if at >= 0 {
					model[at].bytes += bytes
				}
			case 2, 3, 4:
				got, ok := c.Get(key)
				if ok != (at >= 0) || ok && got != model[at].value {
					t.Fatalf("seed %d, step %d: %d, %t of %v", seed, step, got, ok, model)
				}
				if ok {
					model = slices.Insert(model, 0, drop(at))
				}
			default:
				c.Put(key, step, bytes)
				if at >= 0 {
					drop(at)
				}
				model = slices.Insert(model, 0, kept{key, step, bytes})
			}
			for total() > most {
				drop(len(model) - 1)
			}
			if c.Len() != len(model) || c.Bytes() != total() {
				t.Fatalf("seed %d, step %d: %d values of %d bytes, and not %v", seed, step, c.Len(), c.Bytes(), model)
			}
		}
		c.Clear()
		if _, ok := c.Get(1); ok || c.Len() != 0 || c.Bytes() != 0 {
			t.Fatalf("seed %d: after Clear there are %d values", seed, c.Len())
		}
	}
}
