package edge

import (
	"net/http"
	"strings"

	"github.com/skein-threads/skein/events"
)

// HeaderTenant is the header in which a request at a desk names its tenant.
const HeaderTenant = "Skein-Tenant"

// Desk accepts every request without authentication: it is for one machine, on loopback. Every
// request is that of Tenant, or, if Tenant is empty, of the tenant in its header Skein-Tenant.
type Desk struct {
	Tenant string
	// Credentials says that the edge reaches NATS by credentials, which others on the machine
	// may not have: then no request names its tenant.
	Credentials bool
}

// Authenticate returns the principal of a request at a desk.
func (d Desk) Authenticate(r *http.Request) (Principal, error) {
	if token, ok := Bearer(r); ok && strings.HasPrefix(token, "skein_") { // the caller thinks that it counts
		return Principal{}, events.Errorf(events.Unauthorized, "the API key is not valid: this server runs without --access, and has none")
	}
	tenant := d.Tenant
	if tenant == "" && d.Credentials {
		return Principal{}, events.Errorf(events.Unauthorized, "this server's credentials reach every tenant, and requests are not authenticated; start skein serve with --tenant to serve one of them")
	}
	if tenant == "" {
		tenant = r.Header.Get(HeaderTenant)
	}
	if tenant == "" {
		return Principal{}, events.Errorf(events.Unauthorized, "the request names no tenant; set the header %s, or start skein serve with --tenant", HeaderTenant)
	}
	if err := events.CheckTenant("/headers/"+HeaderTenant, tenant); err != nil {
		return Principal{}, err
	}
	return Principal{Tenant: tenant, Roles: []string{"publisher", "subscriber"}, Subject: "desk", Desk: true}, nil
}
