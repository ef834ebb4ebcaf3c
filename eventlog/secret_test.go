package eventlog

import (
	"bytes"
	"sync"
	"testing"
)

// Of processes that ask at once one creates the secret of a store, and all have that one, also
// those that come later.
func TestSecret_CreatedOnce(t *testing.T) {
	t.Parallel()
	l := start(t)
	const processes = 8
	secrets, errs := [processes][]byte{}, [processes]error{}
	var asking sync.WaitGroup
	for i := range processes {
		one := sibling(t, l)
		asking.Go(func() { secrets[i], errs[i] = one.Secret(t.Context(), WriterSecret) })
	}
	asking.Wait()
	late, err := l.Secret(t.Context(), WriterSecret)
	if err != nil || len(late) != 32 {
		t.Fatalf("%x, %v", late, err)
	}
	for i, secret := range secrets {
		if errs[i] != nil || !bytes.Equal(secret, late) {
			t.Errorf("process %d has %x and not %x: %v", i, secret, late, errs[i])
		}
	}
	if other, err := l.Secret(t.Context(), "other"); err != nil || bytes.Equal(other, late) {
		t.Errorf("another secret: %x, %v", other, err)
	}
}
