package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/events"
)

// Signer signs manifests with an NKey. Wipe it when done.
type Signer struct {
	pair   nkeys.KeyPair
	public string
}

// NewSigner reads a seed: an NKey seed of any kind, as `nk -gen` writes it, or a
// file of credentials that holds one. The text is not kept, and is in no error.
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
		return nil, fmt.Errorf("the public key of the seed: %w", err)
	}
	return &Signer{pair: pair, public: public}, nil
}

// Public gives the public key: who imports the file names it.
func (s *Signer) Public() string { return s.public }

// Wipe takes the seed out of memory.
func (s *Signer) Wipe() { s.pair.Wipe() }

func (s *Signer) sign(b []byte) ([]byte, error) { return s.pair.Sign(b) }

// ValidKey reports whether a text is a public NKey.
func ValidKey(public string) bool { return nkeys.IsValidPublicKey(public) }

// signed checks the signature of the last line. key is who must have signed it;
// empty: whoever it names.
func (l FileLast) signed(key string) error {
	switch {
	case l.Key == "" && key == "":
		return nil
	case l.Key == "":
		return errors.New("it is not signed, and the key of a signer was given")
	case key != "" && l.Key != key:
		return fmt.Errorf("it is signed by %.80q, and not by %s", l.Key, key)
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
		return fmt.Errorf("its signature is not that of %s over its manifest: the file was altered", l.Key)
	}
	return nil
}
