package arguments

import (
	"crypto/sha256"
	"sync"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
)

const (
	maxCachedBytes   = 16 << 20 // enough for 1,000 schemas or more
	schemaBytes      = 16 << 10 // estimate for a compiled schema, without its text and its patterns
	instructionBytes = 100      // estimate for one instruction of a compiled pattern
)

// Checker checks calls against the schemas of their tools. It caches the compiled schemas that
// were used last. It is safe for concurrent use.
type Checker struct {
	mu    sync.Mutex // guards known
	known *lru.Cache[[sha256.Size]byte, *entry]
}

// entry is the result of compiling a schema, which is done once.
type entry struct {
	once   sync.Once
	schema *Schema
	err    error
}

// New returns a Checker without schemas.
func New() *Checker {
	return &Checker{known: lru.New[[sha256.Size]byte, *entry](maxCachedBytes)}
}

// CheckSchema returns an error if calls cannot be checked against a schema. An empty schema
// accepts any object. The error is an *events.Error, as that of Compile.
func (c *Checker) CheckSchema(schema events.JSON) error {
	_, err := c.cachedSchema(schema)
	return err
}

// Check checks a call's arguments against a schema. The error is an *Error as from Schema.Check, or
// the error of CheckSchema.
func (c *Checker) Check(schema, arguments events.JSON) error {
	s, err := c.cachedSchema(schema)
	if err != nil {
		return err
	}
	return s.Check(arguments)
}

// cachedSchema returns the compiled schema; nil accepts any object.
func (c *Checker) cachedSchema(schema events.JSON) (*Schema, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	if len(schema) > MaxSchema {
		return Compile(schema) // the schema is too large: Compile returns the error, which is not cached
	}
	key := sha256.Sum256(schema)
	e := c.find(key, len(schema))
	e.once.Do(func() {
		if e.schema, e.err = Compile(schema); e.err == nil {
			c.grow(key, e, e.schema.patterns*instructionBytes)
		}
	})
	return e.schema, e.err
}

// find returns the entry of a schema, and creates it, with the given size, if there is none.
func (c *Checker) find(key [sha256.Size]byte, bytes int) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known.Get(key); ok {
		return known
	}
	e := &entry{}
	c.known.Put(key, e, int64(schemaBytes+bytes))
	return e
}

// grow updates the size of an entry after it was compiled, if it is still cached.
func (c *Checker) grow(key [sha256.Size]byte, e *entry, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, _ := c.known.Get(key); known == e {
		c.known.Grow(key, int64(bytes))
	}
}
