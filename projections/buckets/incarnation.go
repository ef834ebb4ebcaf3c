package buckets

import "github.com/go-json-experiment/json"

// Incarnation tells readers that follow a bucket by its sequences when to read it again. A killed
// server may lose the newest writes of a derived bucket, which is not synced to disk at once, and
// reuse their sequences. A reader that resumes after the last sequence that it has seen would miss
// the new messages. So the runner writes a new incarnation before anything else when it starts and
// when it reconnects.
type Incarnation struct {
	Incarnation string `json:"incarnation"` // a random name
	Log         string `json:"log"`         // the name of the log that the documents are folded from, as in history.get
}

// Encode returns the incarnation as it is stored.
func (i Incarnation) Encode() []byte {
	b, err := json.Marshal(i, json.Deterministic(true))
	if err != nil {
		panic(err) // cannot fail: it only has valid texts
	}
	return b
}
