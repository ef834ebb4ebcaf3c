// Package lru keeps the values that were used last, within a number of bytes.
package lru

import "container/list"

// Cache maps keys to values, each of a size that its owner says. It is not safe for concurrent
// use: its owner has a lock that guards what else must agree with it.
type Cache[K comparable, V any] struct {
	most  int64
	bytes int64
	byKey map[K]*list.Element // of *entry[K, V]
	order list.List           // the one used last first
}

type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int64
}

// New returns a cache of at most that many bytes.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, byKey: map[K]*list.Element{}}
}

// Len returns how many values there are.
func (c *Cache[K, V]) Len() int { return len(c.byKey) }

// Bytes returns the size of all values.
func (c *Cache[K, V]) Bytes() int64 { return c.bytes }

// Get returns the value of a key, which is the one used last then.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	at, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(at)
	return at.Value.(*entry[K, V]).value, true
}

// Put sets the value of a key, and its size. It drops the values that were not used for longest
// until the others fit: this one, too, if it alone does not.
func (c *Cache[K, V]) Put(key K, value V, bytes int64) {
	c.Drop(key)
	c.byKey[key] = c.order.PushFront(&entry[K, V]{key, value, bytes})
	c.bytes += bytes
	c.evict()
}

// Grow adds to the size of a key's value, if there is one, and drops others like Put.
func (c *Cache[K, V]) Grow(key K, by int64) {
	if at, ok := c.byKey[key]; ok {
		at.Value.(*entry[K, V]).bytes += by
		c.bytes += by
		c.evict()
	}
}

// Drop drops the value of a key.
func (c *Cache[K, V]) Drop(key K) {
	if at, ok := c.byKey[key]; ok {
		c.drop(at)
	}
}

// Clear drops all values.
func (c *Cache[K, V]) Clear() {
	clear(c.byKey)
	c.order.Init()
	c.bytes = 0
}

func (c *Cache[K, V]) evict() {
	for c.bytes > c.most && c.order.Len() > 0 {
		c.drop(c.order.Back())
	}
}

func (c *Cache[K, V]) drop(at *list.Element) {
	e := c.order.Remove(at).(*entry[K, V])
	delete(c.byKey, e.key)
	c.bytes -= e.bytes
}
