package chunks

import "github.com/skein-threads/skein/events"

// Decode reads a message of the stream of chunks.
func Decode(raw []byte) (events.ChunkEmitted, error) { return decodeChunk(raw) }

// ClaimNumbers is how many numbers a claim has.
const ClaimNumbers = claimNumbers
