package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/operator/access"
)

// firstAccess creates the folder of --access for the tenant of --access-create where there is none,
// with one API key. The key is printed only now: the folder stores its digest.
func (a *app) firstAccess(o *serveOptions) error {
	if o.firstTenant == "" {
		return nil
	}
	if o.Access == "" {
		return cli.WrongUsage("--access-create: name the folder to create with --access")
	}
	there, err := os.ReadDir(o.Access)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the folder of --access: %w", err)
	}
	if len(there) > 0 {
		return nil
	}
	hosts := append([]string{"localhost", "127.0.0.1"}, o.HTTPHosts...)
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	f, err := access.Init(o.Access, access.InitOptions{Hosts: hosts})
	if err != nil {
		return accessFailed(err)
	}
	if _, _, err := f.AddTenant(o.firstTenant); err != nil {
		return accessFailed(err)
	}
	_, text, err := f.AddKey(keys.Key{Tenant: o.firstTenant, Name: "first", Roles: []string{string(access.Publisher), string(access.Subscriber)}})
	if err != nil {
		return accessFailed(err)
	}
	a.Hint("created %s; the API key of tenant %s, which is shown only now: %s", o.Access, o.firstTenant, text)
	return nil
}
