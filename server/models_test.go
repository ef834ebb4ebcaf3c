package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// Endpoints are declared whole, or the server says what is wrong, and shows no key.
func TestModels_Endpoints(t *testing.T) {
	t.Parallel()
	env := map[string]string{"LOCAL_KEY": "sk-local", "BAD_KEY": "sk two", "ANTHROPIC_API_KEY": "sk-ant"}
	for name, c := range map[string]struct {
		endpoints, options []string
		has                string // names of tenant:endpoint
		fails              string
	}{
		"a key alone":              {nil, nil, "acme:anthropic", ""},
		"of one tenant":            {[]string{"local=chat,http://127.0.0.1:1/v1"}, []string{"local.tenants=acme", "local.timeout=2s", "local.idle=1s", "local.attempts=1", "local.maxBytes=9", "local.rawReasoning=true"}, "acme:local acme:anthropic globex:anthropic !globex:local !acme:openai", ""},
		"with a key":               {[]string{"local=messages,http://127.0.0.1:1,LOCAL_KEY"}, nil, "acme:local", ""},
		"a key that is not set":    {[]string{"local=chat,http://127.0.0.1:1/v1,NO_KEY"}, nil, "", `the environment variable "NO_KEY" of its key is empty or not set`},
		"a key with a blank":       {[]string{"local=chat,http://127.0.0.1:1/v1,BAD_KEY"}, nil, "", "the key (the variable of its key) contains a blank"},
		"no URL":                   {[]string{"local=chat,127.0.0.1:1"}, nil, "", "the URL of --model-endpoint local"},
		"another protocol":         {[]string{"local=gemini,http://127.0.0.1:1"}, nil, "", `"gemini" is none of responses, chat and messages`},
		"no protocol":              {[]string{"local"}, nil, "", "--model-endpoint is NAME=PROTOCOL,URL"},
		"twice":                    {[]string{"a=chat,http://a/v1", "a=chat,http://b/v1"}, nil, "", "declared twice"},
		"options of none":          {nil, []string{"gone.idle=1s"}, "", `there is no endpoint "gone"`},
		"an option that is none":   {nil, []string{"anthropic.speed=1"}, "", `"speed" is none of timeout`},
		"a value that is none":     {nil, []string{"anthropic.idle=soon"}, "", "anthropic.idle: "},
		"no attempts":              {nil, []string{"anthropic.attempts=0"}, "", `anthropic.attempts is "0"`},
		"no time":                  {nil, []string{"anthropic.timeout=0s"}, "", `anthropic.timeout is "0s"`},
		"no bytes":                 {nil, []string{"anthropic.maxBytes=0"}, "", `anthropic.maxBytes is "0"`},
		"a tenant that is none":    {nil, []string{"anthropic.tenants=a b"}, "", `"a b" is not a tenant`},
		"options of an absent key": {nil, []string{"openai.idle=1s"}, "acme:anthropic !acme:openai", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Config{ModelEndpoints: c.endpoints, ModelEndpointOptions: c.options}.modelEndpoints(func(k string) string { return env[k] }, zerolog.Nop())
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "sk") {
					t.Errorf("%v, want %s", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name := range strings.FieldsSeq(c.has) {
				name, absent := strings.CutPrefix(name, "!")
				if tenant, endpoint, _ := strings.Cut(name, ":"); got.Has(tenant, endpoint) == absent {
					t.Errorf("%s: %v", name, !absent)
				}
			}
		})
	}
}

// A definition that names an endpoint which does not exist for its tenant is refused when it is put.
func TestModels_DefinitionOfNoEndpoint(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{Store: t.TempDir(), NATSListen: "127.0.0.1:0", Volatile: true,
		ModelEndpoints: []string{"local=chat,http://127.0.0.1:1/v1"}, ModelEndpointOptions: []string{"local.tenants=acme"}}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
	nc := natstest.Dial(t, s.Addresses().NATS)
	for tenant, c := range map[string]struct {
		endpoint string
		put      bool
	}{"acme": {"local", true}, "globex": {"local", false}, "initech": {"gone", false}, "hooli": {"", true}} {
		who, err := client.New(nc, client.Options{Tenant: tenant, Timeout: natstest.Patience})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(map[string]string{"name": "m", "model": "x", "endpoint": c.endpoint})
		if err != nil {
			t.Fatal(err)
		}
		_, err = who.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{{Kind: events.ModelKind, Definition: raw}}})
		if refused := events.HasCode(err, events.InvalidRequest) && strings.Contains(err.Error(), "--model-endpoint"); c.put && err != nil || !c.put && !refused {
			t.Errorf("%s, endpoint %q: %v", tenant, c.endpoint, err)
		}
	}
}
