package files

import (
	"strconv"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
)

// Names of an entry's metadata.
const (
	metaType   = "mimeType"
	metaWidth  = "width"
	metaHeight = "height"
	metaOf     = "of" // of a page of a history: the thread with the items that it was made from
)

// contentOf returns the description of an object's content that events hold.
func contentOf(o *objects.Object, digest string) events.FileContent {
	if o == nil {
		return events.FileContent{}
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(o.Metadata[name], 10, 64) // 0 if absent
		return n
	}
	return events.FileContent{
		Digest: digest, Size: o.Size, MimeType: o.Metadata[metaType], Width: number(metaWidth), Height: number(metaHeight),
	}
}
