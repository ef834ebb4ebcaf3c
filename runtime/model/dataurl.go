package model

import (
	"slices"
	"strings"
)

// DataURL splits a data URL in base64. It reports false for one whose data is empty or invalid, which
// endpoints refuse with the whole request.
func DataURL(address string) (media, data string, ok bool) {
	rest, ok := strings.CutPrefix(address, "data:")
	head, data, found := strings.Cut(rest, ",")
	kind, encoded := strings.CutSuffix(head, ";base64")
	media, _, _ = strings.Cut(kind, ";")
	return media, data, ok && found && encoded && isBase64(data)
}

// isBase64 reports whether a text is data in base64, with its padding or without.
func isBase64(data string) bool {
	digits := strings.TrimRight(data, "=")
	if digits == "" || len(data)-len(digits) > 2 {
		return false
	}
	for i := range len(digits) {
		switch c := digits[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		default:
			return false
		}
	}
	return true
}

// IsImage reports whether all endpoints that see images take those of a media type.
func IsImage(media string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media)
}
