package streams

import (
	"fmt"
	"strconv"

	"github.com/skein-threads/skein/internal/build"
)

// presentFormat is the format that this Skein writes. It grows with a change after which an older Skein
// would misread what is stored, and FirstWithFormat with it.
const presentFormat = 1

// FirstWithFormat is the first version of Skein that reads the present format.
const FirstWithFormat = "0.1.0"

// The keys of the metadata of the log's stream, which goes with the log wherever that goes: into the
// folder of an embedded server, where it is read before a server runs, to a server of an operator, and
// into backups.
const (
	numberKey = "skein.format"
	firstKey  = "skein.format.first"
)

// NewerFormatError says that something was stored in a format that this Skein does not know. Nothing was
// changed.
type NewerFormatError struct {
	Where  string // the store or the backup
	Format string
	First  string // version of Skein that reads it; may be empty
}

func (e *NewerFormatError) Error() string {
	first := "the version that wrote it"
	if e.First != "" {
		first = "Skein " + e.First
	}
	return fmt.Sprintf("%s has format %s, and this Skein (%s) reads formats up to %d: use %s or a newer one, or restore a backup from before the upgrade",
		e.Where, e.Format, build.This().Version, presentFormat, first)
}

// FormatMetadata returns what the log's stream says of the present format.
func FormatMetadata() map[string]string {
	return map[string]string{numberKey: strconv.Itoa(presentFormat), firstKey: FirstWithFormat}
}

// CheckFormat returns a *NewerFormatError if the metadata of a stream names a format that this Skein does not
// know. A log without one is from before there were formats.
func CheckFormat(where string, metadata map[string]string) error {
	text, ok := metadata[numberKey]
	if !ok {
		return nil
	}
	if n, err := strconv.Atoi(text); err == nil && n <= presentFormat {
		return nil
	}
	return &NewerFormatError{Where: where, Format: fmt.Sprintf("%.20s", text), First: fmt.Sprintf("%.40s", metadata[firstKey])}
}
