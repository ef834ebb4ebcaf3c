package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/events"
)

func newFolder(t *testing.T, o InitOptions) *Folder {
	t.Helper()
	f, err := Init(filepath.Join(t.TempDir(), "access"), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every file is its owner's alone, and secret keys are only where they belong.
func TestFilesArePrivate(t *testing.T) {
	f := newFolder(t, InitOptions{Hosts: []string{"127.0.0.1"}})
	if _, _, err := f.Add(User{Name: "app", Tenant: "acme", Roles: []Role{Publisher, Subscriber}}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && filepath.Base(path) != "skein.lock" {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		room := filepath.Base(filepath.Dir(path))
		if secret := hasSeed(string(body)); secret != (room == keysDir || room == credsDir) {
			t.Errorf("%s: a secret key is in it: %v", path, secret)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// hasSeed finds the secret key of an operator, an account or a user.
func hasSeed(text string) bool {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }) {
		if len(word) == 58 && word[0] == 'S' {
			if _, err := nkeys.FromSeed([]byte(word)); err == nil {
				return true
			}
		}
	}
	return false
}

func TestBadUsersAreRefused(t *testing.T) {
	f := newFolder(t, InitOptions{})
	past := time.Now().Add(-time.Minute)
	for name, u := range map[string]User{
		"no name":               {Tenant: "acme", Roles: []Role{Publisher}},
		"a name with a dot":     {Name: "a.b", Tenant: "acme", Roles: []Role{Publisher}},
		"a name that is all":    {Name: ">", Tenant: "acme", Roles: []Role{Publisher}},
		"a name of a path":      {Name: "../x", Tenant: "acme", Roles: []Role{Publisher}},
		"no role":               {Name: "app", Tenant: "acme"},
		"no such role":          {Name: "app", Tenant: "acme", Roles: []Role{"king"}},
		"no tenant":             {Name: "app", Roles: []Role{Publisher}},
		"a tenant that is all":  {Name: "app", Tenant: "*", Roles: []Role{Publisher}},
		"a tenant with a dot":   {Name: "app", Tenant: "acme.T", Roles: []Role{Subscriber}},
		"an auditor's tenant":   {Name: "app", Tenant: "acme", Roles: []Role{Auditor}},
		"roles that do not go":  {Name: "app", Tenant: "acme", Roles: []Role{Publisher, Administrator}},
		"a worker of nothing":   {Name: "app", Roles: []Role{Worker}},
		"a worker of all":       {Name: "app", Roles: []Role{Worker}, Reactors: []string{">"}},
		"a reactor's publisher": {Name: "app", Tenant: "acme", Roles: []Role{Publisher}, Reactors: []string{"x"}},
		"past":                  {Name: "app", Tenant: "acme", Roles: []Role{Publisher}, Expires: &past},
	} {
		if creds, _, err := f.Add(u); err == nil {
			t.Errorf("%s was taken: %s", name, creds)
		}
	}
	if len(f.Users()) != 1 || len(f.state.Tenants) != 0 {
		t.Errorf("something was added: %+v", f.state)
	}
	ok := User{Name: "app", Tenant: "acme", Roles: []Role{Publisher}}
	if _, _, err := f.Add(ok); err != nil {
		t.Fatal(err)
	}
	var exists *ExistsError
	if _, _, err := f.Add(ok); !errors.As(err, &exists) {
		t.Errorf("a name was taken twice: %v", err)
	}
}

// Init changes no folder that holds something, and nothing is left of one that
// could not be made.
func TestInitIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	if _, err := Init(filepath.Join(dir, "a"), InitOptions{Prefix: "not one"}); err == nil {
		t.Error("a bad prefix was taken")
	}
	if _, err := Init(filepath.Join(dir, "a"), InitOptions{Cert: "x"}); err == nil {
		t.Error("a certificate without a key was taken")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("%v is left: %v", list, err)
	}
	if _, err := Init(filepath.Join(dir, "a"), InitOptions{}); err != nil {
		t.Fatal(err)
	}
	var exists *ExistsError
	if _, err := Init(filepath.Join(dir, "a"), InitOptions{}); !errors.As(err, &exists) {
		t.Errorf("made twice: %v", err)
	}
	var none *NoFolderError
	if _, err := Open(dir); !errors.As(err, &none) {
		t.Errorf("opened what is none: %v", err)
	}
}

// Several processes at work lose no user: the second one gets an error, and tries again.
func TestManyAddAtOnce(t *testing.T) {
	f := newFolder(t, InitOptions{})
	const users = 8
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			own, err := Open(f.dir)
			if err != nil {
				t.Error(err)
				return
			}
			for {
				_, _, err := own.Add(User{Name: string(rune('a' + i)), Tenant: "acme", Roles: []Role{Publisher}})
				var busy *BusyError
				if errors.As(err, &busy) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	all.Wait()
	again, err := Open(f.dir)
	if err != nil || len(again.Users()) != users+1 {
		t.Errorf("%d users: %v", len(again.Users()), err)
	}
}

// A user's token says what the table of the roles says, and no account but
// Skein's has JetStream.
func TestTokensSayWhatTheRoleMay(t *testing.T) {
	f := newFolder(t, InitOptions{})
	creds, _, err := f.Add(User{Name: "app", Tenant: "acme", Roles: []Role{Publisher, Subscriber}})
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(creds)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.ParseDecoratedJWT(body)
	if err != nil {
		t.Fatal(err)
	}
	c, err := jwt.DecodeUserClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Pub.Allow, " "); got != "$SRV.INFO.agents $SRV.INFO.agents.* $SRV.PING.agents $SRV.PING.agents.* $SRV.STATS.agents $SRV.STATS.agents.* "+
		"agents.prompt.*.acme.* agents.reply.*.acme.* agents.status.*.acme.* "+
		"skein.cmd.acme.> skein.file.acme.> skein.live.acme.> skein.query.acme.> skein.submit.acme.> skein.upload.acme.>" {
		t.Errorf("it may publish %s", got)
	}
	if got := strings.Join(c.Sub.Allow, " "); got != "_INBOX.app.> agents.hb.*.acme.* skein.live.acme.> skein.timeline.acme.>" {
		t.Errorf("it may subscribe to %s", got)
	}
	if c.Issuer != f.state.Accounts[tenantAccount("acme")] || c.BearerToken || c.Resp != nil {
		t.Errorf("%+v", c)
	}
	for name := range f.state.Accounts {
		a := claims(events.DefaultNames(), name, "acme", f.state.Accounts)
		if enabled := a.Limits.DiskStorage != 0 || a.Limits.MemoryStorage != 0; enabled != (name == skeinAccount) {
			t.Errorf("%s has JetStream: %v", name, enabled)
		}
	}
}
