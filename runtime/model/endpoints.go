package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/runtime"
)

// Endpoint is an endpoint of the operator's, by its name.
type Endpoint struct {
	Name    string
	Reactor *Reactor
	Tenants []string // who may use it; empty: everybody
}

// Endpoints is a reactor that asks the endpoint that a model names. It is safe for concurrent use.
type Endpoints struct {
	list []Endpoint
	def  string // the name of the default
}

// NewEndpoints returns a reactor over endpoints. The default is the one with that name, or else the
// first.
func NewEndpoints(list []Endpoint, standard string) *Endpoints {
	if len(list) > 0 && !slices.ContainsFunc(list, func(e Endpoint) bool { return e.Name == standard }) {
		standard = list[0].Name
	}
	return &Endpoints{list, standard}
}

// Has reports whether there is an endpoint of that name for a tenant.
func (e *Endpoints) Has(tenant, name string) bool {
	_, err := e.find(tenant, runtime.Model{Endpoint: name})
	return err == nil
}

// find returns the endpoint of a model, if the tenant may use it.
func (e *Endpoints) find(tenant string, m runtime.Model) (*Reactor, error) {
	name := m.Endpoint
	if name == "" {
		name = e.def
	}
	for _, one := range e.list {
		if one.Name == name && (len(one.Tenants) == 0 || slices.Contains(one.Tenants, tenant)) {
			return one.Reactor, nil
		}
	}
	if len(e.list) == 0 {
		return nil, errors.New("no endpoint for models is configured: start skein serve with OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY or --model-endpoint")
	}
	return nil, fmt.Errorf("the model %.64q names the endpoint %.64q, which does not exist here; the operator declares it with --model-endpoint", m.Name, name)
}

// React implements runtime.Reactor. An endpoint that does not exist for the tenant does not answer.
func (e *Endpoints) React(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	r, err := e.find(in.Tenant, in.Model)
	if err != nil {
		return nil, &runtime.UnansweredError{Err: err}
	}
	return r.React(ctx, in, out)
}
