package console

import (
	"html/template"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// streamShell returns the element that the text of a run grows in until it is committed.
func streamShell(execution string) string {
	return `<article class="turn assistant growing"><header class="turn-head"><span class="speaker">writing</span></header>` +
		`<div class="thought" id="reasoning-` + template.HTMLEscapeString(execution) + `"></div>` +
		`<div class="text growing-text" id="text-` + template.HTMLEscapeString(execution) + `"></div></article>`
}

// chunkPatch returns what a chunk adds to the text, or false if it adds nothing.
func chunkPatch(c client.Chunk) (page.Patch, bool) {
	var d struct {
		Delta          string `json:"delta"`
		InputTextDelta string `json:"inputTextDelta"`
		ToolName       string `json:"toolName"`
	}
	if len(c.Data) > 0 && json.Unmarshal(c.Data, &d) != nil {
		return page.Patch{}, false
	}
	row := "text-" + c.ExecutionID
	switch c.Type {
	case events.ChunkTextDelta:
		return page.Patch{Panel: "stream", Row: row, Text: d.Delta}, d.Delta != ""
	case events.ChunkReasoningDelta:
		return page.Patch{Panel: "stream", Row: "reasoning-" + c.ExecutionID, Text: d.Delta}, d.Delta != ""
	case events.ChunkToolInputStart:
		return page.Patch{Panel: "stream", Row: "reasoning-" + c.ExecutionID, Text: "\n→ " + d.ToolName + " "}, d.ToolName != ""
	case events.ChunkToolInputDelta:
		return page.Patch{Panel: "stream", Row: "reasoning-" + c.ExecutionID, Text: d.InputTextDelta}, d.InputTextDelta != ""
	}
	return page.Patch{}, false
}
