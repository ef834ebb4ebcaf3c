package agents

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/runtime/remote"
)

// version is a version of the protocol.
type version string

// The versions that are spoken here.
const (
	v1 version = "1.0"
	v0 version = "0.3"
)

const (
	cardPath = "/.well-known/agent-card.json"
	jsonRPC  = "JSONRPC"
)

// card is the interfaces in an agent's card: those of A2A 1.0, and of 0.3.
type card struct {
	Interfaces []struct {
		URL     string `json:"url"`
		Binding string `json:"protocolBinding"`
		Version string `json:"protocolVersion"`
	} `json:"supportedInterfaces"`

	URL        string `json:"url"`
	Preferred  string `json:"preferredTransport"`
	Additional []struct {
		URL       string `json:"url"`
		Transport string `json:"transport"`
	} `json:"additionalInterfaces"`
}

// cardURL returns the address of a card: the one that is given, or the usual one of an origin.
func cardURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(u.Path, ".json") {
		u.Path = strings.TrimSuffix(u.Path, "/") + cardPath
	}
	return u.String(), nil
}

// jsonRPC returns where the agent takes JSON-RPC, and of which version; an empty address: nowhere.
func (c *card) jsonRPC() (address string, v version) {
	for _, one := range c.Interfaces {
		if one.Binding == jsonRPC && !strings.HasPrefix(one.Version, string(v0)) {
			return one.URL, v1
		}
	}
	for _, one := range c.Interfaces {
		if one.Binding == jsonRPC {
			return one.URL, v0
		}
	}
	if c.Preferred == "" || c.Preferred == jsonRPC {
		return c.URL, v0
	}
	for _, one := range c.Additional {
		if one.Transport == jsonRPC {
			return one.URL, v0
		}
	}
	return "", v0
}

// a2aAgent is an agent that is spoken to.
type a2aAgent struct {
	endpoint remote.Endpoint
	version  version
}

// find reads the agent's card, unless it is known.
func (t *a2aTool) find(ctx context.Context) (*a2aAgent, error) {
	if known := t.agent.Load(); known != nil {
		return known, nil
	}
	at, err := cardURL(t.options.URL)
	if err != nil {
		return nil, t.wrong("has no card: its URL cannot be parsed")
	}
	endpoint, err := t.options.Reach(at)
	if err != nil {
		return nil, err
	}
	raw, err := t.exchange(ctx, &a2aAgent{endpoint, v1}, nil)
	if err != nil {
		return nil, err
	}
	var c card
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, t.wrong("has no card at " + at + ": what is there is not the JSON of one")
	}
	address, v := c.jsonRPC()
	if address == "" {
		return nil, t.wrong("takes no JSON-RPC, as its card says, and nothing else is spoken here")
	}
	base, err := url.Parse(at)
	if err == nil {
		base, err = base.Parse(address)
	}
	if err != nil {
		return nil, t.wrong("has a card with the address " + excerpt.Of(address, 200) + ", which is none")
	}
	a := &a2aAgent{version: v}
	if a.endpoint, err = t.options.Reach(base.String()); err != nil {
		return nil, err
	}
	t.agent.Store(a)
	return a, nil
}

// exchange sends a request, a GET if there is no body, and returns the body of its answer.
func (t *a2aTool) exchange(ctx context.Context, to *a2aAgent, body []byte, opts ...remote.Option) ([]byte, error) {
	headers := http.Header{"Accept": {"application/json"}, "A2a-Version": {string(to.version)}}
	if t.options.Token != "" {
		headers.Set("Authorization", "Bearer "+t.options.Token)
	}
	raw, err := to.endpoint.Exchange(ctx, "application/json", headers, body, append(opts, remote.Logger(t.options.Logger))...)
	return raw, t.masked(err)
}
