package projections

import (
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// node is a document in memory.
type node struct {
	slot  documents.Slot
	known bool // the slot is as new as the bucket, or newer; an empty slot means that there is no document
	dirty bool // the document has to be written
	bytes int64
	mark  buckets.Mark // of a thread's own document

	prev, next *node
}

// nodeBytes is roughly what a document in memory costs in addition to its content, which
// takes about as much as its JSON.
const nodeBytes = 300

// cache keeps documents in memory, bounded in bytes, and evicts the least recently used. It
// belongs to one goroutine, and implements documents.Store.
type cache struct {
	limit int64
	bytes int64
	nodes map[documents.Place]*node
	last  [documents.Kinds]*node // of each read model, the node requested last, which is often requested again
	ring  node                   // the ring's head: next is the node used last
}

func newCache(limit int64) *cache {
	c := &cache{limit: limit, nodes: map[documents.Place]*node{}}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// Slot implements documents.Store.
func (c *cache) Slot(p documents.Place) *documents.Slot { return &c.node(p).slot }

// node returns the node of a place, and creates it if necessary. The node becomes the most
// recently used.
func (c *cache) node(p documents.Place) *node {
	n := c.last[p.Kind]
	ok := n != nil && n.slot.Place == p
	if !ok {
		n, ok = c.nodes[p]
	}
	if !ok {
		n = &node{bytes: nodeBytes}
		n.slot.Place, n.slot.Owner = p, n
		c.nodes[p] = n
		c.bytes += n.bytes
	} else {
		n.prev.next, n.next.prev = n.next, n.prev
	}
	n.prev, n.next = &c.ring, c.ring.next
	n.prev.next, n.next.prev = n, n
	c.last[p.Kind] = n
	return n
}

// cached returns a document that is in memory, or nil.
func (c *cache) cached(p documents.Place) any {
	if n, ok := c.nodes[p]; ok {
		return n.slot.Doc
	}
	return nil
}

// size records how large a document is.
func (c *cache) size(n *node, json int) {
	size := nodeBytes + int64(json)
	c.bytes += size - n.bytes
	n.bytes = size
}

// drop forgets a document. It clears the node's links, or a reference to the node would keep all
// nodes in memory that are dropped later.
func (c *cache) drop(n *node) {
	n.prev.next, n.next.prev = n.next, n.prev
	n.prev, n.next = nil, nil
	c.bytes -= n.bytes
	delete(c.nodes, n.slot.Place)
	if kind := n.slot.Place.Kind; c.last[kind] == n {
		c.last[kind] = nil
	}
}

// forget drops a place that has no document.
func (c *cache) forget(p documents.Place) {
	if n, ok := c.nodes[p]; ok && n.slot.Doc == nil && !n.dirty {
		c.drop(n)
	}
}

// trim evicts documents until the cache is within its limit, except those that have to be
// written.
func (c *cache) trim() { c.trimTo(c.limit) }

// empty evicts all documents, except those that have to be written.
func (c *cache) empty() {
	if len(c.nodes) == 0 {
		return
	}
	if c.trimTo(0); len(c.nodes) == 0 {
		c.nodes = map[documents.Place]*node{} // a map keeps the room that it once had
	}
}

func (c *cache) trimTo(limit int64) {
	for n := c.ring.prev; n != &c.ring && c.bytes > limit; {
		before := n.prev
		if !n.dirty {
			c.drop(n)
		}
		n = before
	}
}
