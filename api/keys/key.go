package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Files of the access folder.
const (
	File     = "http-keys.json"      // the keys
	UsedFile = "http-keys-used.json" // when each was last used
)

// Prefix is how every key begins.
const Prefix = "skein_"

// Key is an API key without its secret.
type Key struct {
	ID      string            `json:"id"`
	Hash    string            `json:"hash"` // hex of the SHA-256 of the secret
	Tenant  string            `json:"tenant"`
	Roles   []string          `json:"roles"`
	Name    string            `json:"name,omitzero"`
	User    string            `json:"user,omitzero"`     // limits it to the threads of this user
	Threads []string          `json:"threads,omitempty"` // limits it to these threads
	Can     []edge.Capability `json:"can,omitempty"`     // limits what it may do
	Created time.Time         `json:"created"`
	Expires *time.Time        `json:"expires,omitzero"`
	Revoked *time.Time        `json:"revoked,omitzero"`
}

// New returns a key with a new id, and its text, which exists nowhere else.
func New(k Key, now time.Time) (Key, string, error) {
	if err := k.check(now); err != nil {
		return k, "", err
	}
	random := make([]byte, 6+32)
	if _, err := rand.Read(random); err != nil {
		return k, "", err
	}
	secret := hex.EncodeToString(random[6:])
	k.ID, k.Created = hex.EncodeToString(random[:6]), now.UTC().Truncate(time.Second)
	k.Hash = hashOf(secret)
	return k, Prefix + k.ID + "_" + secret, nil
}

// Actor returns the actor of the commands that have the key.
func (k Key) Actor() string { return subject + k.ID }

// active is the state of a key that may be used.
const active = "active"

// State returns active, expired or revoked.
func (k Key) State(now time.Time) string {
	switch {
	case k.Revoked != nil:
		return "revoked"
	case k.Expires != nil && !now.Before(*k.Expires):
		return "expired"
	}
	return active
}

// check reports what is wrong with a key that is to be made.
func (k Key) check(now time.Time) error {
	if err := events.CheckTenant("", k.Tenant); err != nil {
		return errors.New(events.AsError(err).Message)
	}
	switch {
	case len(k.Roles) == 0:
		return errors.New("a role is needed: publisher, subscriber or both")
	case len(k.Name) > 256 || len(k.User) > 256:
		return errors.New("a name and a user have at most 256 bytes")
	case k.Expires != nil && !k.Expires.After(now):
		return fmt.Errorf("it would expire at %s, which is past", k.Expires.Format(time.RFC3339))
	}
	for _, r := range k.Roles {
		if !slices.Contains(events.TenantRole("").Enum(), r) {
			return fmt.Errorf("a key has the roles publisher and subscriber, not %q", r)
		}
	}
	for _, id := range k.Threads {
		if !events.ValidThreadID(id) {
			return fmt.Errorf("%q is not a thread's id", id)
		}
	}
	for _, c := range k.Can {
		if !slices.Contains(edge.Capabilities(), c) {
			return fmt.Errorf("a key can read, write, approve, define and tools, not %q", c)
		}
	}
	return nil
}

// matches reports whether the secret is the key's.
func (k Key) matches(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(k.Hash)) == 1
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// parse returns the id and the secret of a key's text.
func parse(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "_")
}

// Read returns the keys of an access folder.
func Read(dir string) ([]Key, error) {
	var list []Key
	return list, read(filepath.Join(dir, File), &list)
}

// Used returns when the keys of an access folder were last used, by id.
func Used(dir string) (map[string]time.Time, error) {
	used := map[string]time.Time{}
	return used, read(filepath.Join(dir, UsedFile), &used)
}

// read decodes a file, if there is one.
func read(path string, to any) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		return fmt.Errorf("read the API keys in %s: %w", path, err)
	}
	return nil
}
