package eventlog

import (
	"errors"
	"testing"

	"github.com/skein-threads/skein/eventlog/streams"
)

func TestErrorsUnwrap(t *testing.T) {
	cause := errors.New("cause")
	for _, err := range []error{&UnknownError{cause}, &UnavailableError{cause}, &streams.FencedError{Stream: "S", Cause: cause}} {
		if !errors.Is(err, cause) || err.Error() == "" {
			t.Errorf("%T hides its cause", err)
		}
	}
}
