package rest

import (
	"context"
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Operations lists what operators' programs have done to all that is stored. It is safe for
// concurrent use.
type Operations interface {
	List(ctx context.Context) (*events.OperationList, error)
}

// listOperations answers operators.
func (s *service) listOperations(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	if _, err := decodeParameters(req, nil, nil); err != nil {
		return err
	}
	switch {
	case !s.Operators.May(c):
		return events.Errorf(events.Forbidden, "operations are of all tenants, and for keys that skein serve was started with: --console-operator")
	case s.Operations == nil:
		return events.Errorf(events.NotFound, "this process stores nothing, and knows of no operations; ask skein serve")
	}
	list, err := s.Operations.List(req.Context())
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, list)
	return nil
}
