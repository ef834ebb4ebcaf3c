package buckets

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// IsConflict reports whether a write was refused because its key has changed.
func IsConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
