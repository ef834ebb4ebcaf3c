package events

import "github.com/go-json-experiment/json/jsontext"

// The events of a part (EK-145, EK-146) and of a chunk (EK-147).
const (
	PartCreatedType  Type = "part.created"
	PartUpdatedType  Type = "part.updated"
	ChunkEmittedType Type = "chunk.emitted"
)

// PartCreated says that a step gave a piece of its output.
type PartCreated struct {
	Key    string         `json:"key" schema:"required,pattern=partKey" doc:"stepId:idx."`
	StepID string         `json:"stepId" schema:"required,pattern=id" doc:"The step it belongs to."`
	Idx    int64          `json:"idx" schema:"required,minimum=0" doc:"Its place in the step, from 0."`
	Type   string         `json:"type,omitzero" schema:"maxLength=128" doc:"What kind of part it is."`
	Part   jsontext.Value `json:"part,omitzero" doc:"The part itself, any JSON, kept as it came."`
}

// PartUpdated says that a part was replaced: its fields are those of the part
// as it is now.
type PartUpdated struct {
	Key    string         `json:"key" schema:"required,pattern=partKey" doc:"stepId:idx."`
	StepID string         `json:"stepId" schema:"required,pattern=id" doc:"The step it belongs to."`
	Idx    int64          `json:"idx" schema:"required,minimum=0" doc:"Its place in the step, from 0."`
	Type   string         `json:"type,omitzero" schema:"maxLength=128" doc:"What kind of part it is."`
	Part   jsontext.Value `json:"part,omitzero" doc:"The part itself, any JSON, kept as it came."`
}

// ChunkEmitted is a piece of a stream. It is transport, not state: it never
// enters the log (C-43).
type ChunkEmitted struct {
	ExecutionID string         `json:"executionId" schema:"required,pattern=id" doc:"The execution that streams."`
	Index       int64          `json:"index" schema:"required,minimum=0" doc:"Its place in the execution's stream, from 0."`
	Type        string         `json:"type" schema:"required,maxLength=128" doc:"What kind of chunk it is (EK 8.1)."`
	Data        jsontext.Value `json:"data,omitzero" doc:"The chunk itself."`
}

func partEvents() []Row {
	return []Row{
		row[PartCreated](PartCreatedType, 1, "A step gave a piece of its output."),
		row[PartUpdated](PartUpdatedType, 1, "A part was replaced."),
	}
}

func chunkEvents() []Row {
	return []Row{transient(row[ChunkEmitted](ChunkEmittedType, 1, "A piece of an execution's stream; never in the log."))}
}
