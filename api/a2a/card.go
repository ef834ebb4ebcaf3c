package a2a

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// cardPath is where clients look for a card.
const cardPath = "/.well-known/agent-card.json"

// card describes an agent to clients of both versions: those of 1.0 read supportedInterfaces, and those
// of 0.3 the fields after it.
type card struct {
	Name         string                `json:"name"`
	Description  string                `json:"description"`
	Version      string                `json:"version"`
	Interfaces   []agentInterface      `json:"supportedInterfaces"`
	Capabilities capabilities          `json:"capabilities"`
	Schemes      map[string]scheme     `json:"securitySchemes"`
	Requirements []requirement         `json:"securityRequirements"`
	InputModes   []string              `json:"defaultInputModes"`
	OutputModes  []string              `json:"defaultOutputModes"`
	Skills       []skill               `json:"skills"`
	Protocol     string                `json:"protocolVersion"`
	URL          string                `json:"url"`
	Transport    string                `json:"preferredTransport"`
	Security     []map[string][]string `json:"security"`
	Extended     bool                  `json:"supportsAuthenticatedExtendedCard"`
}

// agentInterface is a URL at which an agent is asked.
type agentInterface struct {
	URL     string `json:"url"`
	Binding string `json:"protocolBinding"`
	Version string `json:"protocolVersion"`
}

type capabilities struct {
	Streaming         bool `json:"streaming"`
	PushNotifications bool `json:"pushNotifications"`
	Extended          bool `json:"extendedAgentCard"`
}

// scheme is how a client proves who it is, in the forms of 0.3 and of 1.0.
type scheme struct {
	Type   string `json:"type"`
	Scheme string `json:"scheme"`
	HTTP   struct {
		Scheme string `json:"scheme"`
	} `json:"httpAuthSecurityScheme"`
}

// requirement names the schemes of 1.0 that are needed, with their scopes.
type requirement struct {
	Schemes map[string]struct {
		List []string `json:"list,omitempty"`
	} `json:"schemes"`
}

type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// cardOf returns the card of an agent. url is the address of JSON-RPC.
func cardOf(url string, a *agent) card {
	const bearer = "bearer"
	s := scheme{Type: "http", Scheme: bearer}
	s.HTTP.Scheme = "Bearer"
	needs := requirement{Schemes: map[string]struct {
		List []string `json:"list,omitempty"`
	}{bearer: {}}}
	return card{
		Name: a.name, Description: a.description, Version: a.version,
		Interfaces: []agentInterface{
			{url, "JSONRPC", string(v1)}, {url, "HTTP+JSON", string(v1)}, {url, "JSONRPC", string(v0)},
		},
		Capabilities: capabilities{Streaming: true, PushNotifications: true, Extended: true},
		Schemes:      map[string]scheme{bearer: s},
		Requirements: []requirement{needs},
		InputModes:   []string{"text/plain", "application/json", "image/png", "image/jpeg", "application/pdf"},
		OutputModes:  []string{"text/plain", "application/json"},
		Skills:       []skill{{a.name, a.name, a.description, []string{"agent"}}},
		Protocol:     "0.3.0", URL: url, Transport: "JSONRPC",
		Security: []map[string][]string{{bearer: {}}}, Extended: true,
	}
}

// agent is an agent that is asked.
type agent struct{ name, description, version string }

// agentNamed returns an agent of the caller's tenant, as a client shows it.
func agentNamed(ctx context.Context, now *client.Client, c *edge.Caller, name string) (*agent, error) {
	a := &agent{name, "The agent " + name + ".", "1"}
	d, err := now.Definition(ctx, events.AgentKind, name)
	if events.IsNotFound(err) && c.Desk && events.Pattern(events.PatternName).MatchString(name) { // as in /v1, a reactor needs no definition there
		_, err = client.Read(ctx, now, events.GetAgent{Name: name})
		return a, err
	}
	if err != nil {
		return nil, err
	}
	var of struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(d.Definition, &of) // it was checked when it was stored
	if a.version = strconv.FormatInt(d.Version, 10); of.Description != "" {
		a.description = of.Description
	}
	return a, nil
}

// card returns the card of an agent, for those who may read the agent's definition.
func (s *server) card(r *http.Request, c *edge.Caller, name string) (card, error) {
	now, err := c.Client.UpToDate(r.Context())
	if err != nil {
		return card{}, err
	}
	a, err := agentNamed(r.Context(), now, c, name)
	if err != nil {
		return card{}, err
	}
	return cardOf(s.url(r, name), a), nil
}

// sendCard answers with the card of an agent.
func (s *server) sendCard(w http.ResponseWriter, r *http.Request, c *edge.Caller, name string) error {
	out, err := s.card(r, c, name)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, max-age=60")
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}
