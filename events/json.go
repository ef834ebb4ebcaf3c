package events

import "encoding/json"

// JSON is a raw JSON value. It is the standard library's json.RawMessage, so that a program
// that has one can put it into a request unchanged. A []byte with JSON, such as json.Marshal
// returns, can be assigned too.
type JSON = json.RawMessage
