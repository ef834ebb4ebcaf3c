package eventlog

import (
	"errors"
	"testing"
)

func TestErrorsUnwrap(t *testing.T) {
	cause := errors.New("cause")
	for _, err := range []error{&UnknownError{cause}, &UnavailableError{cause}, &FencedError{"S", cause}} {
		if !errors.Is(err, cause) || err.Error() == "" {
			t.Errorf("%T hides its cause", err)
		}
	}
}
