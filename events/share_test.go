package events

import (
	"testing"
	"time"
)

// A share is opened by its token, and by no other, until it ends.
func TestShare_Opens(t *testing.T) {
	key := []byte("a key of thirty-two bytes, or so")
	token := ShareToken(key, "acme", "T-1", "cmd-1", "shr_1")
	s := &Share{Digest: ShareDigest(token)}
	end := TimeOf(time.UnixMicro(1_000_000).UTC())
	for name, c := range map[string]struct {
		token, expires string
		now            Time
		want           bool
	}{
		"without an end":  {token, "", end + 1, true},
		"another's token": {ShareToken(key, "acme", "T-1", "cmd-2", "shr_1"), "", 0, false},
		"before its end":  {token, end.String(), end - 1, true},
		"at its end":      {token, end.String(), end, false},
		"after its end":   {token, end.String(), end + 1, false},
		"another's, then": {token + "x", end.String(), end - 1, false},
		"an end unknown":  {token, "tomorrow", 0, false},
	} {
		s.ExpiresAt = c.expires
		if got := s.Opens(c.token, c.now); got != c.want {
			t.Errorf("%s: opened: %v", name, got)
		}
	}
	for token, want := range map[string]string{token: "shr_1", "shr_1": "", "shr_1.": "", ".secret": "", "a b.secret": "", "shr_2.x": "shr_2"} {
		if id, ok := ShareOf(token); ok != (want != "") || ok && id != want {
			t.Errorf("%q is of share %q: %v", token, id, ok)
		}
	}
}
