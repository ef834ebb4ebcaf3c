package api

import (
	"net/http"

	"github.com/skein-threads/skein/api/endpoints"
	"github.com/skein-threads/skein/client"
)

// DefineThreadEndpoint returns a handler of requests about one thread, to be registered with
// skein.Server.Endpoint: it answers at /threads/{threadId}/ and the endpoint's name, with any
// method. The thread is looked up first. state can do only what the principal of the request
// may do, and its Execution is nil.
//
// handle must write an answer, or return an error before it writes anything; otherwise the
// request is answered with status 500.
func DefineThreadEndpoint(handle func(w http.ResponseWriter, r *http.Request, state *client.ThreadState) error) http.Handler {
	return endpoints.Define(handle)
}
