package state

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
)

var threadPattern = regexp.MustCompile(`^thrd_[a-zA-Z0-9]{27,59}$`)

// ValidThreadID reports whether s is the id of a thread as providers return it: thrd_ and 27 to
// 59 letters and digits.
func ValidThreadID(s string) bool {
	return len(s) <= maxThreadID && threadPattern.MatchString(s)
}

// NewThreadID returns a new id: thrd_ and 32 hexadecimal digits.
func NewThreadID() string { return "thrd_" + randomHex() }

func newSessionID() string { return "sess_" + randomHex() }

func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return hex.EncodeToString(b[:])
}

// Lengths.
const (
	maxThreadID = 64
	maxSigned   = maxThreadID + 1 + 44 // an id, a semicolon, 32 bytes in base64
)

// keyring is keys that sign ids. The first one signs, all verify.
type keyring [][]byte

// sign returns an id with its signature: threadId;signature.
func (k keyring) sign(id string) string { return id + ";" + signature(k[0], id) }

// verify returns the id that one of the keys has signed.
func (k keyring) verify(signed string) (id string, ok bool) {
	if len(signed) > maxSigned {
		return "", false
	}
	id, sum, found := strings.Cut(signed, ";")
	if !found || !ValidThreadID(id) {
		return "", false
	}
	for _, key := range k {
		if hmac.Equal([]byte(sum), []byte(signature(key, id))) {
			ok = true
		}
	}
	return id, ok
}

func signature(key []byte, id string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
