package pairs

import (
	"encoding/hex"
	"strings"

	"github.com/skein-threads/skein/events"
)

// Names of tenants' own texts in subjects are hexadecimal: any text makes one token, and the
// order of the tokens is that of the texts.

// subjectOf returns the subject of a key, below the bucket's prefix.
func subjectOf(prefix, bucket, key string) string {
	return prefix + hex.EncodeToString([]byte(bucket)) + "." + hex.EncodeToString([]byte(key))
}

// keyOf returns the bucket and the key of a subject.
func keyOf(prefix, subject string) (bucket, key string, ok bool) {
	rest, ok := strings.CutPrefix(subject, prefix)
	first, second, two := strings.Cut(rest, ".")
	b, err := hex.DecodeString(first)
	k, err2 := hex.DecodeString(second)
	return string(b), string(k), ok && two && err == nil && err2 == nil
}

// checkName refuses a bucket or key that is too long. The schema has counted characters.
func checkName(field, text string, most int64) error {
	if n := int64(len(text)); n > most {
		e := events.TooLarge("the "+field, n, most)
		e.Details.Path = "/" + field
		return e
	}
	return nil
}
