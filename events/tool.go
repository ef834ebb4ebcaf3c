package events

// ToolResult is the result of a call of a tool. A failure of the work is a result too.
type ToolResult struct {
	Status ToolStatus `json:"status" schema:"required" doc:"success or error."`
	Result JSON       `json:"result,omitzero" doc:"Of a success: any JSON."`
	Error  string     `json:"error,omitzero" doc:"Of an error: what happened."`
}
