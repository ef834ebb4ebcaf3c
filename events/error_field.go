package events

import (
	"fmt"
	"strings"
)

// AtField returns the refusal of a command as one of the request that the command was made of, for a
// client that has not seen the command. field returns the place in the request, a JSON pointer, for one
// in the command's data; empty if the request has none. Other errors are returned unchanged.
func AtField(err error, field func(inData string) string) error {
	e := *AsError(err)
	if e.Details == nil {
		return err
	}
	details := *e.Details
	inData, is := dataPath(details.Path)
	switch {
	case e.Code == PayloadTooLarge:
		if details.Command != nil {
			e.Message = fmt.Sprintf("the data has %d bytes; at most %d are allowed", details.Size, details.Limit)
		}
	case !is:
		return err
	}
	e.Message, e.Details = strings.TrimPrefix(e.Message, details.Path+": "), &details
	details.Path, details.Command = field(inData), nil
	return &e
}

// dataPath returns a path in the data of a command, and reports whether it is one. It may be one of the
// commands of a thread.commit.
func dataPath(path string) (inData string, is bool) {
	if rest, ok := strings.CutPrefix(path, "/data/commands/"); ok {
		_, rest, _ = strings.Cut(rest, "/")
		return strings.TrimPrefix("/"+rest, "/data"), true
	}
	rest, ok := strings.CutPrefix(path, "/data")
	return rest, ok && (rest == "" || rest[0] == '/')
}
