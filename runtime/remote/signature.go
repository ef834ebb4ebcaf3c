package remote

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed request.
const (
	timestampHeader = "Skein-Timestamp" // seconds since the Unix epoch
	signatureHeader = "Skein-Signature"
)

// The headers of Standard Webhooks.
const (
	IDHeader                = "Webhook-Id" // the same whenever a request is repeated
	standardTimestampHeader = "Webhook-Timestamp"
	standardSignatureHeader = "Webhook-Signature"
)

// standardPrefix begins a secret that Standard Webhooks writes in base64.
const standardPrefix = "whsec_"

// minSecret is the length of the shortest secret, in bytes.
const minSecret = 16

// Key is a secret and the name by which receivers know it. The name is in the clear.
type Key struct {
	ID     string
	Secret []byte
}

// SigningKeys returns the keys with these names, whose secrets are the values that lookup
// returns. The error names the one that is missing or too short, and no value.
func SigningKeys(names []string, lookup func(name string) (string, bool)) ([]Key, error) {
	keys := make([]Key, len(names))
	for i, name := range names {
		value, ok := lookup(name)
		switch {
		case !ok || value == "":
			return nil, fmt.Errorf("the variable %s is not set", name)
		case len(value) < minSecret:
			return nil, fmt.Errorf("the secret in the variable %s is shorter than %d bytes", name, minSecret)
		}
		if standard, ok := standardSecret([]byte(value)); !ok || len(standard) < minSecret {
			return nil, fmt.Errorf("the secret in the variable %s begins with %s, and is not base64 of at least %d bytes after that", name, standardPrefix, minSecret)
		}
		keys[i] = Key{name, []byte(value)}
	}
	return keys, nil
}

// standardSecret returns the secret with which a key signs as Standard Webhooks does: what a text
// after whsec_ encodes in base64, and any other secret as it is.
func standardSecret(secret []byte) (_ []byte, ok bool) {
	text, encoded := strings.CutPrefix(string(secret), standardPrefix)
	if !encoded {
		return secret, true
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	return decoded, err == nil
}

// Sign adds the headers of a request that is sent at a time, so that its receivers know who sent it,
// and when.
//
// The signed text is the time in the header Skein-Timestamp, a full stop, and the body.
// Skein-Signature lists the HMAC-SHA256 of this text, in hex, under each of one or two
// secrets, as NAME=HEX separated by commas. So a secret can be replaced without a
// moment in which a receiver that knows only the old or only the new one refuses
// requests. The page docs/http-workers.md shows how to verify it.
//
// A request with an id also has the signatures of Standard Webhooks
// (https://www.standardwebhooks.com), for which there are libraries in many languages. The id is in
// [IDHeader].
func Sign(h http.Header, at time.Time, body []byte, keys []Key) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	id := h.Get(IDHeader)
	own, standard := make([]string, len(keys)), make([]string, 0, len(keys))
	for i, k := range keys {
		own[i] = k.ID + "=" + hex.EncodeToString(sum(k.Secret, body, stamp))
		if secret, ok := standardSecret(k.Secret); ok {
			standard = append(standard, "v1,"+base64.StdEncoding.EncodeToString(sum(secret, body, id, stamp)))
		}
	}
	h.Set(timestampHeader, stamp)
	h.Set(signatureHeader, strings.Join(own, ","))
	if id != "" && len(standard) > 0 {
		h.Set(standardTimestampHeader, stamp)
		h.Set(standardSignatureHeader, strings.Join(standard, " "))
	}
}

// sum returns the HMAC-SHA256 of what precedes the body, a full stop after each, and the body.
func sum(secret, body []byte, before ...string) []byte {
	mac := hmac.New(sha256.New, secret)
	for _, text := range before {
		mac.Write([]byte(text + "."))
	}
	mac.Write(body)
	return mac.Sum(nil)
}
