package arguments

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/skein-threads/skein/events"
)

const (
	maxCached      = 512     // schemas
	maxCachedBytes = 8 << 20 // of their text, and of their patterns as they are compiled

	instructionBytes = 100 // about, of a compiled pattern
)

// Checker checks calls against the schemas of their tools. It keeps the compiled schemas
// that were used last. It is safe for concurrent use.
type Checker struct {
	mu     sync.Mutex
	known  map[[sha256.Size]byte]*list.Element // of *entry
	recent list.List                           // the latest used first
	bytes  int
}

// entry is a schema's text and what came of compiling it, once.
type entry struct {
	key    [sha256.Size]byte
	bytes  int
	once   sync.Once
	schema *Schema
	err    error
}

// New returns a Checker without schemas.
func New() *Checker { return &Checker{known: map[[sha256.Size]byte]*list.Element{}} }

// CheckSchema returns an error if calls cannot be checked against a schema. No bytes are
// a schema that takes any object. The error is an *events.Error, as that of Compile.
func (c *Checker) CheckSchema(schema events.JSON) error {
	_, err := c.compiled(schema)
	return err
}

// Check checks a call's arguments against a schema. The error is an *Error, as that of
// Schema.Check, or that of CheckSchema.
func (c *Checker) Check(schema, arguments events.JSON) error {
	s, err := c.compiled(schema)
	if err != nil {
		return err
	}
	return s.Check(arguments)
}

// compiled returns the schema compiled; nil takes any object.
func (c *Checker) compiled(schema events.JSON) (*Schema, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	if len(schema) > MaxSchema {
		return Compile(schema) // which refuses it, and it is not kept
	}
	e := c.find(schema)
	e.once.Do(func() {
		if e.schema, e.err = Compile(schema); e.err == nil {
			c.grow(e, e.schema.patterns*instructionBytes)
		}
	})
	return e.schema, e.err
}

// find returns the entry of a schema, and makes one if there is none.
func (c *Checker) find(schema events.JSON) *entry {
	key := sha256.Sum256(schema)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[key]; ok {
		c.recent.MoveToFront(known)
		return known.Value.(*entry)
	}
	e := &entry{key: key, bytes: len(schema)}
	c.known[key] = c.recent.PushFront(e)
	c.bytes += e.bytes
	c.evict()
	return e
}

// grow counts what an entry turned out to need, if it is still kept.
func (c *Checker) grow(e *entry, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[e.key]; !ok || known.Value.(*entry) != e {
		return
	}
	e.bytes += bytes
	c.bytes += bytes
	c.evict()
}

// evict drops the entries that were not used for longest, until the rest fits; the
// caller holds the lock.
func (c *Checker) evict() {
	for c.recent.Len() > maxCached || c.bytes > maxCachedBytes {
		old := c.recent.Remove(c.recent.Back()).(*entry)
		delete(c.known, old.key)
		c.bytes -= old.bytes
	}
}
