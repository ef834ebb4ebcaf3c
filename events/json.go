package events

import "encoding/json"

// JSON is a JSON value as it came: a json.RawMessage of the standard library, so that
// a program which has one puts it into a request as it is. A []byte that holds JSON,
// such as json.Marshal returns, does as well.
type JSON = json.RawMessage
