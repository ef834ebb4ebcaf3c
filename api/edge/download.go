package edge

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

const (
	downloadStall = 30 * time.Second // a client that takes nothing of a file for so long is ended
	mostRanges    = 16               // of one request; each reads pieces of its own
)

// HeaderSeq is the header with the sequence of the commit that an answer shows.
const HeaderSeq = "Skein-Seq"

// DescribeFile sets the headers of a file's content. Browsers show only what cannot run, and
// in a sandbox; the rest they store.
func DescribeFile(h http.Header, record *events.FileRecord) {
	kind, _, err := mime.ParseMediaType(record.MimeType)
	if err != nil {
		kind = "application/octet-stream"
		h.Set("Content-Type", kind)
	} else {
		h.Set("Content-Type", record.MimeType)
	}
	disposition := "attachment"
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "application/pdf", "text/plain"}, kind) {
		disposition = "inline"
	}
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": record.Name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", ETag(record.Digest))
	h.Set(HeaderSeq, strconv.FormatInt(record.Seq, 10))
}

// ETag returns a digest as an entity tag.
func ETag(digest string) string { return `"` + digest + `"` }

// ServeFile answers with the content of a file whose headers were set, for all protocols: streamed, in
// parts with Range, unless the client has it already. It is refused with an error while
// nothing of it was sent; afterwards the connection ends.
func ServeFile(w http.ResponseWriter, r *http.Request, c *client.Client, record *events.FileRecord) error {
	fitRange(r.Header, record.Size)
	content := &content{ctx: r.Context(), files: c.Files(record.ThreadID), record: record, alive: http.NewResponseController(w)}
	defer content.close()
	answer := &refusing{ResponseWriter: w}
	http.ServeContent(answer, r, "", time.Time{}, content)
	if content.err != nil {
		if answer.fail() {
			return content.err
		}
		panic(http.ErrAbortHandler) // the answer has begun: only the connection's end tells that it is not whole
	}
	answer.begin()
	return nil
}
