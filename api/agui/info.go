package agui

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// agentInfo describes an agent to CopilotKit.
type agentInfo struct {
	Name         string      `json:"name"`
	Description  string      `json:"description"`
	ClassName    string      `json:"className"`
	Capabilities events.JSON `json:"capabilities"`
}

// capabilities says what every agent can do, in the words of AG-UI.
const capabilities = `{"transport":{"streaming":true,"resumable":true},"tools":{"supported":true,"clientProvided":true},` +
	`"state":{"snapshots":true,"persistentState":true},"reasoning":{"supported":true,"streaming":true},` +
	`"humanInTheLoop":{"supported":true,"approvals":true,"interrupts":true,"approveWithEdits":true}}`

// info answers with the agents that can be asked.
func info(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	now, err := c.Client.UpToDate(r.Context())
	if err != nil {
		return err
	}
	agents := map[string]agentInfo{}
	for q := (events.ListDefinitions{Kind: events.AgentKind, Limit: new(int64(1000))}); ; {
		page, err := client.Read(r.Context(), now, q)
		if err != nil {
			return err
		}
		for _, d := range page.Definitions {
			var of struct {
				Description string `json:"description"`
			}
			_ = json.Unmarshal(d.Definition, &of) // it was checked when it was stored
			agents[d.Name] = agentInfo{d.Name, of.Description, "SkeinAgent", events.JSON(capabilities)}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		Version string               `json:"version"`
		Mode    string               `json:"mode"`
		Agents  map[string]agentInfo `json:"agents"`
		Audio   bool                 `json:"audioFileTranscriptionEnabled"`
	}{protocolVersion, "sse", agents, false})
	return nil
}
