// Package format says in which form Skein keeps what it stores, so that an older Skein leaves alone
// what it would misread.
//
// The number is in the metadata of the log's stream. It goes with the log wherever that goes: into
// the folder of an embedded server, where it is read before a server runs, to a server of an
// operator, and into backups.
package format

import (
	"fmt"
	"strconv"

	"github.com/skein-threads/skein/internal/build"
)

// Present is the format that this Skein writes. It grows with a change after which an older Skein
// would misread what is stored, and First with it.
const Present = 1

// First is the first version of Skein that reads the present format.
const First = "0.1.0"

// The keys of the metadata.
const (
	numberKey = "skein.format"
	firstKey  = "skein.format.first"
)

// NewerError says that something was stored in a format that this Skein does not know. Nothing was
// changed.
type NewerError struct {
	Where  string // the store or the backup
	Format string
	First  string // version of Skein that reads it; may be empty
}

func (e *NewerError) Error() string {
	first := "the version that wrote it"
	if e.First != "" {
		first = "Skein " + e.First
	}
	return fmt.Sprintf("%s has format %s, and this Skein (%s) reads formats up to %d: use %s or a newer one, or restore a backup from before the upgrade",
		e.Where, e.Format, build.This().Version, Present, first)
}

// Metadata returns what the log's stream says of the present format.
func Metadata() map[string]string {
	return map[string]string{numberKey: strconv.Itoa(Present), firstKey: First}
}

// Check returns a *NewerError if the metadata of a stream names a format that this Skein does not
// know. A log without one is from before there were formats.
func Check(where string, metadata map[string]string) error {
	text, ok := metadata[numberKey]
	if !ok {
		return nil
	}
	if n, err := strconv.Atoi(text); err == nil && n <= Present {
		return nil
	}
	return &NewerError{Where: where, Format: fmt.Sprintf("%.20s", text), First: fmt.Sprintf("%.40s", metadata[firstKey])}
}
