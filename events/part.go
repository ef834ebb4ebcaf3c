package events

// The events of a part.
const (
	PartCreatedType Type = "part.created"
	PartUpdatedType Type = "part.updated"
)

// PartCreated records a piece of a step's output.
type PartCreated struct {
	Key    string `json:"key" schema:"required,pattern=partKey" doc:"stepId:idx."`
	StepID string `json:"stepId" schema:"required,pattern=id" doc:"The step it belongs to."`
	Idx    int64  `json:"idx" schema:"required,minimum=0" doc:"Its place in the step, from 0."`
	Type   string `json:"type,omitzero" schema:"maxLength=128" doc:"What kind of part it is."`
	Part   JSON   `json:"part,omitzero" doc:"The part itself, stored unchanged."`
}

// PartUpdated records that a part was replaced. Its fields are the new ones.
type PartUpdated struct {
	Key    string `json:"key" schema:"required,pattern=partKey" doc:"stepId:idx."`
	StepID string `json:"stepId" schema:"required,pattern=id" doc:"The step it belongs to."`
	Idx    int64  `json:"idx" schema:"required,minimum=0" doc:"Its place in the step, from 0."`
	Type   string `json:"type,omitzero" schema:"maxLength=128" doc:"What kind of part it is."`
	Part   JSON   `json:"part,omitzero" doc:"The part itself, stored unchanged."`
}

type partRules interface {
	PartCreated(e *Event, d PartCreated) error
	PartUpdated(e *Event, d PartUpdated) error
}

func partEvents() []Row {
	return []Row{
		row(PartCreatedType, 1, "A step produced a piece of its output.",
			PartCreated{Key: PartKey(exampleStep, 0), StepID: exampleStep, Type: "tool-find_order", Part: JSON(`{"type":"tool-find_order","toolCallId":"tc_1","input":{"order":42}}`)}, Rules.PartCreated),
		row(PartUpdatedType, 1, "A part was replaced.",
			PartUpdated{Key: PartKey(exampleStep, 0), StepID: exampleStep, Type: "tool-find_order", Part: JSON(`{"type":"tool-find_order","toolCallId":"tc_1","state":"output-available","output":{"status":"shipped"}}`)}, Rules.PartUpdated),
	}
}
