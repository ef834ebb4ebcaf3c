package excerpt

import (
	"errors"
	"fmt"
)

// OfError returns the text of an error that code outside of Skein has made, of at most so many
// bytes. Its Error method may panic, as on a nil pointer: then the text names its type.
func OfError(err error, most int) (text string) {
	defer func() {
		if recover() != nil {
			text = Of(fmt.Sprintf("an error of the type %T, whose text cannot be read", err), most)
		}
	}()
	return Of(err.Error(), most)
}

// Readable returns an error whose text can be read as it is, and another error that says its type
// in place of one whose Error method panics.
func Readable(err error) (readable error) {
	if err == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			readable = errors.New(OfError(err, 1<<10))
		}
	}()
	_ = err.Error()
	return err
}
