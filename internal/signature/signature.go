// Package signature signs the HTTP requests that Skein sends, so that their receivers
// know who sent them, and when.
//
// The signed text is the time in the header Skein-Timestamp, a full stop, and the body.
// Skein-Signature lists the HMAC-SHA256 of this text, in hex, under each of one or two
// secrets, as NAME=HEX separated by commas. So a secret can be replaced without a
// moment in which a receiver that knows only the old or only the new one refuses
// requests. The page docs/http-workers.md shows how to verify it.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed request.
const (
	TimestampHeader = "Skein-Timestamp" // seconds since the Unix epoch
	SignatureHeader = "Skein-Signature"
)

// MinSecret is the length of the shortest secret, in bytes.
const MinSecret = 16

// Key is a secret and the name by which receivers know it. The name is in the clear.
type Key struct {
	ID     string
	Secret []byte
}

// Keys returns the keys with these names, whose secrets are the values that lookup
// returns. The error names the one that is missing or too short, and no value.
func Keys(names []string, lookup func(name string) (string, bool)) ([]Key, error) {
	keys := make([]Key, len(names))
	for i, name := range names {
		value, ok := lookup(name)
		switch {
		case !ok || value == "":
			return nil, fmt.Errorf("the variable %s is not set", name)
		case len(value) < MinSecret:
			return nil, fmt.Errorf("the secret in the variable %s is shorter than %d bytes", name, MinSecret)
		}
		keys[i] = Key{name, []byte(value)}
	}
	return keys, nil
}

// Sign adds the headers of a request that is sent at a time.
func Sign(h http.Header, at time.Time, body []byte, keys []Key) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	list := make([]string, len(keys))
	for i, k := range keys {
		mac := hmac.New(sha256.New, k.Secret)
		mac.Write([]byte(stamp + "."))
		mac.Write(body)
		list[i] = k.ID + "=" + hex.EncodeToString(mac.Sum(nil))
	}
	h.Set(TimestampHeader, stamp)
	h.Set(SignatureHeader, strings.Join(list, ","))
}
