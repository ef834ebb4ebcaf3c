package streams

import (
	"errors"
	"fmt"
)

// FencedError says that another writer has written the stream. What was sent
// up to the sequence Last may be stored; read where the stream stands, and
// begin again from there.
type FencedError struct {
	Stream string
	Cause  error
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("stream %s has another writer: %v", e.Stream, e.Cause)
}

func (e *FencedError) Unwrap() error { return e.Cause }

// IsFenced reports whether err says that another writer has taken over.
func IsFenced(err error) bool {
	var f *FencedError
	return errors.As(err, &f)
}
