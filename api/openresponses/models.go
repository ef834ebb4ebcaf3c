package openresponses

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// model is an agent or a model that is defined.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// models returns what the tenant defines: agents, and models whose name no agent has.
func models(ctx context.Context, c *edge.Caller) ([]model, error) {
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	list := []model{}
	for _, kind := range []events.DefinitionKind{events.AgentKind, events.ModelKind} {
		for q := (events.ListDefinitions{Kind: kind, Bare: true, Limit: new(int64(1000))}); ; {
			page, err := client.Read(ctx, upToDate, q)
			if err != nil {
				return nil, err
			}
			for _, d := range page.Definitions {
				if !slices.ContainsFunc(list, func(m model) bool { return m.ID == d.Name }) {
					list = append(list, model{d.Name, "model", unix(d.UpdatedAt), c.Tenant})
				}
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b model) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// listModels answers GET /v1/models.
func listModels(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	list, err := models(r.Context(), c)
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", list})
	return nil
}

// getModel answers GET /v1/models/{id}.
func getModel(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	name := r.PathValue("id")
	if !events.Pattern(events.PatternName).MatchString(name) {
		return noModel(name)
	}
	d, err := defined(r.Context(), c, name)
	if events.IsNotFound(err) {
		return noModel(name)
	}
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, model{name, "model", unix(d.UpdatedAt), c.Tenant})
	return nil
}
