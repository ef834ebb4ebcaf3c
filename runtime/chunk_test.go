package runtime

import (
	"slices"
	"testing"

	"github.com/skein-threads/skein/events"
)

// The kinds of chunks that reactors and the loop stream are those that clients and the
// docs know (EK-126..EK-131).
func TestKindsOfChunks(t *testing.T) {
	t.Parallel()
	given := []string{
		ChunkContextID, ChunkContextSubstate, ChunkThreadPing, ChunkToolOutput, ChunkToolError, ChunkFinish,
		ChunkTextDelta, ChunkReasoningDelta, ChunkReasoningEnd, ChunkToolInputStart, ChunkToolInputDelta, ChunkToolInput,
	}
	var known []string
	for _, k := range events.ChunkKinds() {
		known = append(known, k.Type)
	}
	slices.Sort(given)
	slices.Sort(known)
	if !slices.Equal(given, known) {
		t.Errorf("streamed %v, known %v", given, known)
	}
}
