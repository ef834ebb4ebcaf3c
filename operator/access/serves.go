package access

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/jwt/v2"

	"github.com/skein-threads/skein/events"
)

// Serves returns the tenants that a gateway with the credentials in a file serves, nil if they
// do not limit it, or if there is no file.
func Serves(creds string, n events.Names) ([]string, error) {
	if creds == "" { // a password says nothing
		return nil, nil
	}
	raw, err := os.ReadFile(creds)
	if err != nil {
		return nil, err
	}
	defer clear(raw)
	token, err := jwt.ParseDecoratedJWT(raw)
	if err != nil || token == "" {
		return nil, nil // a secret key alone says nothing
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil { // whose text might hold what is in the file
		return nil, errors.New("--creds: the token in " + creds + " cannot be read")
	}
	var tenants []string
	for _, subject := range claims.Pub.Allow {
		if tenant, ok := strings.CutPrefix(subject, n.GatewayKeys("")+"."); ok && events.ValidTenant(tenant) {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	return tenants, nil
}
