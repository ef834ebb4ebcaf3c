package documents

import (
	"strings"

	"github.com/skein-threads/skein/events"
)

// Place identifies a document: its read model, its thread, and the rest of its key, which is
// empty for the thread's own document. A document of the tenant belongs to the tenant's own
// aggregate, which its key omits.
type Place struct {
	Kind   Kind
	Thread string // {tenant}.{thread}
	ID     string
}

// ThreadName returns the Thread of a place.
func ThreadName(tenant, thread string) string { return tenant + "." + thread }

// CutThreadName returns what ThreadName was given.
func CutThreadName(name string) (tenant, thread string) {
	tenant, thread, _ = strings.Cut(name, ".")
	return tenant, thread
}

// Key returns the document's key in its bucket.
func (p Place) Key() string { return p.Under("") }

// Under returns the key with a prefix.
func (p Place) Under(prefix string) string {
	if p.ID == "" {
		return prefix + p.Thread
	}
	if p.Kind == Definitions {
		return prefix + strings.TrimSuffix(p.Thread, events.TenantAggregate) + p.ID
	}
	return prefix + p.Thread + "." + p.ID
}

// ParsePlace parses a key of a read model's bucket.
func ParsePlace(k Kind, key string) (Place, bool) {
	tenant, rest, ok := strings.Cut(key, ".")
	if !ok || tenant == "" || tenant[0] == '_' {
		return Place{}, false
	}
	if k == Definitions {
		_, known := events.ParseDefinitionKey(rest)
		return Place{Kind: k, Thread: ThreadName(tenant, events.TenantAggregate), ID: rest}, known
	}
	thread, id, more := strings.Cut(rest, ".")
	if strings.HasPrefix(id, pieceMark[1:]) { // a piece of a document, not a document
		return Place{}, false
	}
	if thread == "" || more == (k == Threads) {
		return Place{}, false
	}
	return Place{Kind: k, Thread: key[:len(tenant)+1+len(thread)], ID: id}, true
}

// pieceMark takes the place of an id in the key of a piece of a large document. No id contains
// it.
const pieceMark = "./."

// PieceKey returns the key of a piece of a large document, in the document's bucket.
func PieceKey(thread, digest string) string { return thread + pieceMark + digest }

// ParsePiece parses the key of a piece.
func ParsePiece(key string) (thread string, ok bool) {
	thread, digest, ok := strings.Cut(key, pieceMark)
	return thread, ok && digest != "" && strings.Contains(thread, ".")
}

// validID reports whether an id from the log may be part of a key: tokens of letters, digits,
// dashes, underscores and equals signs, separated by points. Ids were validated when they were
// written; a log of other software must not break the protocol.
func validID(id string) bool {
	if len(id) > 256 {
		return false
	}
	last := byte('.')
	for i := range len(id) {
		c := id[i]
		if !ofToken(c) && (c != '.' || last == '.') {
			return false
		}
		last = c
	}
	return last != '.'
}

// ofToken reports whether a byte may be part of a token of a key.
func ofToken(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '='
}

// Slot holds the document of a place, or the fact that there is none.
type Slot struct {
	Place Place
	Doc   any    // one of the structs of EK 4, or *Page, by pointer; nil: there is none (any more)
	Seq   uint64 // of the commit that last changed it, or removed it
	Owner any    // for the owner of the slot

	derived bool // from the pages of an inherited history; nothing has changed it

	during bool  // the commit being folded has changed it
	made   bool  // that commit created it...
	at     int64 // ...at this time, in microseconds
}

// Store is where a fold finds its documents.
type Store interface {
	// Slot returns the slot of a place, always the same one and never nil: with its document,
	// if there is one, or empty.
	Slot(Place) *Slot
}
