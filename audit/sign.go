package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/events"
)

// Signer signs manifests with an NKey. Call Wipe when done.
type Signer struct {
	pair   nkeys.KeyPair
	public string
}

// NewSigner parses a seed: an NKey seed of any kind, as `nk -gen` writes it, or a credentials
// file that contains one. The text is not retained, and not in the error.
func NewSigner(seed []byte) (*Signer, error) {
	pair, err := nkeys.ParseDecoratedNKey(bytes.TrimSpace(seed))
	if err != nil {
		pair, err = nkeys.FromSeed(bytes.TrimSpace(seed))
	}
	if err != nil {
		return nil, events.Errorf(events.InvalidRequest, "the seed is not an NKey seed, such as SU... or SA...")
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("derive public key of the seed: %w", err)
	}
	return &Signer{pair: pair, public: public}, nil
}

// Public returns the public key, which importers name.
func (s *Signer) Public() string { return s.public }

// Wipe erases the seed from memory.
func (s *Signer) Wipe() { s.pair.Wipe() }

func (s *Signer) sign(b []byte) ([]byte, error) { return s.pair.Sign(b) }

// ValidKey reports whether a text is a public NKey.
func ValidKey(public string) bool { return nkeys.IsValidPublicKey(public) }

// signed verifies the signature of the last line. key is the required signer; empty: the one
// that the line names.
func (l FileLast) signed(key string) error {
	switch {
	case l.Key == "" && key == "":
		return nil
	case l.Key == "":
		return errors.New("it is not signed, but a signer's key is required")
	case key != "" && l.Key != key:
		return fmt.Errorf("it is signed by %.80q, not by %s", l.Key, key)
	}
	pair, err := nkeys.FromPublicKey(l.Key)
	if err != nil {
		return fmt.Errorf("its key %.80q is not a public NKey", l.Key)
	}
	signature, err := base64.StdEncoding.DecodeString(l.Signature)
	if err == nil {
		err = pair.Verify(l.Manifest, signature)
	}
	if err != nil {
		return fmt.Errorf("its signature by %s does not match its manifest: the file was altered", l.Key)
	}
	return nil
}
