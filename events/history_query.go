package events

// Queries of what is stored, in the order of storage. They let a tenant read its share of
// streams that all tenants have in common.
type (
	// GetHistory returns the end of the log.
	GetHistory struct {
		MinSeq *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence that the log must have reached."`
	}
	// HistoryEnd is the end of the log.
	HistoryEnd struct {
		LastSeq int64 `json:"lastSeq" schema:"required,minimum=0" doc:"The sequence of the log's last commit, of any tenant; 0 if it has none."`
	}
	// ListHistory returns the tenant's events in the order of the log.
	ListHistory struct {
		ThreadID     string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"Only those of this thread."`
		FromSeq      *int64 `json:"fromSeq,omitzero" schema:"minimum=1" doc:"The sequence of the first commit that is shown; 1 if absent."`
		AfterVersion *int64 `json:"afterVersion,omitzero" schema:"minimum=0" doc:"Of the commit fromSeq, only events after this version of their thread."`
		Limit        *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 500 if absent."`
		MinSeq       *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence that the log must have reached."`
	}
	// HistoryEntry is an event and its sequence in the log, or a commit that cannot be
	// decoded.
	HistoryEntry struct {
		Seq      int64  `json:"seq" schema:"required,minimum=1" doc:"The sequence in the log of the event's commit."`
		Event    JSON   `json:"event,omitzero" doc:"The event: a CloudEvent as it is in the log. Absent if broken."`
		ThreadID string `json:"threadId,omitzero" doc:"With broken: the thread whose commit it is."`
		Broken   bool   `json:"broken,omitzero" doc:"Whether there is a commit that cannot be read, instead of an event."`
	}
	// HistoryList is a page of the log. NextSeq and NextVersion are the fromSeq and
	// afterVersion of the next page, if there is one.
	HistoryList struct {
		Entries     []HistoryEntry `json:"entries" schema:"required" doc:"The events, in the order of the log."`
		NextSeq     int64          `json:"nextSeq,omitzero" schema:"minimum=1" doc:"The fromSeq of what follows, if more does."`
		NextVersion int64          `json:"nextVersion,omitzero" schema:"minimum=1" doc:"Its afterVersion, if a commit is not shown whole."`
	}
	// ListChunks returns the stored chunks of an execution, in order.
	ListChunks struct {
		ThreadID    string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
		FromIndex   *int64 `json:"fromIndex,omitzero" schema:"minimum=0" doc:"The first number that is wanted; some before it may be shown."`
		FromSeq     *int64 `json:"fromSeq,omitzero" schema:"minimum=1" doc:"Only chunks from this sequence of the stream on."`
		Limit       *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 256 if absent."`
		MinSeq      *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence that the log must have reached."`
	}
	// StoredChunk is a chunk and its sequence in the stream of chunks.
	StoredChunk struct {
		Seq   int64 `json:"seq" schema:"required,minimum=1" doc:"The sequence in the stream of chunks."`
		Event JSON  `json:"event" schema:"required" doc:"The CloudEvent chunk.emitted."`
	}
	// ChunkList is a page of the chunks of an execution.
	ChunkList struct {
		Chunks  []StoredChunk `json:"chunks" schema:"required" doc:"The chunks."`
		NextSeq int64         `json:"nextSeq,omitzero" schema:"minimum=1" doc:"The fromSeq of what follows, if more does."`
	}
)
