package files

import (
	"bytes"
	"image"
	_ "image/gif"  // registers the decoder
	_ "image/jpeg" // registers the decoder
	_ "image/png"  // registers the decoder
	"net/http"
	"strings"

	_ "golang.org/x/image/webp" // registers the decoder

	"github.com/skein-threads/skein/events"
)

// detectType detects the media type of a content from its first piece, as browsers do, and the
// dimensions if it is an image.
func detectType(first []byte) events.FileContent {
	c := events.FileContent{MimeType: http.DetectContentType(first)}
	if len(first) == 0 {
		c.MimeType = "application/octet-stream"
	}
	if strings.HasPrefix(c.MimeType, "image/") {
		if config, _, err := image.DecodeConfig(bytes.NewReader(first)); err == nil {
			c.Width, c.Height = int64(config.Width), int64(config.Height)
		}
	}
	return c
}
