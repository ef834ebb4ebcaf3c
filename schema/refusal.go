package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
)

// refuse returns a refusal of the current value. The callers add the path, with in and at.
func refuse(format string, args ...any) *events.Error { return events.Invalid("", format, args...) }

// in prepends a member's name to the path.
func in(name string, err *events.Error) *events.Error {
	if err != nil {
		err.Details.Path = "/" + pointer(name) + err.Details.Path
	}
	return err
}

// at prepends an element's index to the path.
func at(i int, err *events.Error) *events.Error { return in(strconv.Itoa(i), err) }

// pointer encodes a name as a token of a JSON pointer.
func pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// clip shortens a name that came from a caller.
func clip[T ~string | ~[]byte](name T) string {
	const most = 128
	if len(name) <= most {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:most]), "") + "..."
}

// withPath puts the complete path before the message.
func withPath(err *events.Error) error {
	if err == nil {
		return nil
	}
	if err.Details.Path != "" {
		err.Message = err.Details.Path + ": " + err.Message
	}
	return err
}

// Under prefixes the path of an invalid_request with the JSON pointer of the refused value in
// a larger document, such as "/data" or "/data/commands/3/data". Any other error is returned
// unchanged.
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

// MismatchError says that something stored does not satisfy its schema. Nothing was changed;
// the path is a JSON pointer.
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
