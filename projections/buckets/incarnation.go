package buckets

import "github.com/go-json-experiment/json"

// Incarnation tells readers that follow a bucket by its own sequences when to read it again. A
// server that is killed loses the newest writes of a derived bucket, which does not wait for its
// disk, and uses their sequences for others: a reader that resumes after the last one that it has
// seen misses those. The runner writes another incarnation before anything else whenever that may
// have happened: at its start, and when its connection is re-established.
type Incarnation struct {
	Incarnation string `json:"incarnation"` // a random name
	Log         string `json:"log"`         // that the documents are folded from, as the query history.get names it
}

// Encode returns the incarnation as it is stored.
func (i Incarnation) Encode() []byte {
	b, err := json.Marshal(i, json.Deterministic(true))
	if err != nil {
		panic(err) // it has only texts of ours
	}
	return b
}
