package connect

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// WithoutCredentials returns the URLs of servers, separated by commas, without
// the user, password or token that they may hold, for messages and logs.
func WithoutCredentials(urls string) string {
	list := strings.Split(urls, ",")
	for i, one := range list {
		scheme, rest, ok := strings.Cut(one, "://")
		if !ok {
			scheme, rest = "", one
		} else {
			scheme += "://"
		}
		// All up to the last @: a password may hold one that is not encoded, and a
		// text that is no URL may hold a secret too.
		list[i] = scheme + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.Join(list, ",")
}

// Failed returns the error of connecting to servers, without the credentials
// that their URLs may hold: a URL that cannot be parsed is quoted in the error.
func Failed(urls string, err error) error {
	text := err.Error()
	for one := range strings.SplitSeq(urls, ",") {
		if bare := WithoutCredentials(one); bare != one {
			text = strings.ReplaceAll(text, one, bare)
			_, rest, _ := strings.Cut(one, "://")
			secret := rest[:strings.LastIndex(rest, "@")+1]
			text = strings.ReplaceAll(text, secret, "")
		}
	}
	if errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) {
		text += ": the account has all connections that it may have; close one of them, or share one in a process"
	}
	return &failedError{"no connection to " + WithoutCredentials(urls) + ": " + text, err}
}

// failedError wraps a cause under a text without secrets.
type failedError struct {
	text  string
	cause error
}

func (e *failedError) Error() string { return e.text }
func (e *failedError) Unwrap() error { return e.cause }
