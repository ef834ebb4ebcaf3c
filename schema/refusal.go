package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
)

// refuse says what is wrong with the value at hand; who called adds where it
// lies, with in and at.
func refuse(format string, args ...any) *events.Error { return events.Invalid("", format, args...) }

// in puts the member of that name before the path.
func in(name string, err *events.Error) *events.Error {
	if err != nil {
		err.Details.Path = "/" + pointer(name) + err.Details.Path
	}
	return err
}

// at puts an element's number before the path.
func at(i int, err *events.Error) *events.Error { return in(strconv.Itoa(i), err) }

// pointer writes a name as a token of a JSON pointer.
func pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// clip shortens a name that a caller made up.
func clip[T ~string | ~[]byte](name T) string {
	const most = 128
	if len(name) <= most {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:most]), "") + "..."
}

// said puts the path, now that it is whole, before the message.
func said(err *events.Error) error {
	if err == nil {
		return nil
	}
	if err.Details.Path != "" {
		err.Message = err.Details.Path + ": " + err.Message
	}
	return err
}

// Under tells of an invalid_request where in a bigger document the refused value
// lies: prefix is that value's JSON pointer, as "/data" or "/data/commands/3/data".
// Any other error is given back as it is.
func Under(prefix string, err error) error {
	var e *events.Error
	if !errors.As(err, &e) || e.Code != events.InvalidRequest || e.Details == nil {
		return err
	}
	moved, details := *e, *e.Details
	words := strings.TrimPrefix(strings.TrimPrefix(e.Message, details.Path), ": ")
	details.Path = prefix + details.Path
	moved.Details = &details
	moved.Message = details.Path + ": " + words
	return &moved
}

// MismatchError says that something of the log or of a read model is not what
// its schema says. Nothing was changed; the path is a JSON pointer.
type MismatchError struct {
	Schema string // the schema's file
	Path   string
	Reason string
}

func (e *MismatchError) Error() string {
	where := e.Path
	if where == "" {
		where = "the whole document"
	}
	return fmt.Sprintf("%s does not fit %s: %s", where, e.Schema, e.Reason)
}
