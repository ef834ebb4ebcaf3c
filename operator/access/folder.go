package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
)

// What is in a folder.
const (
	ConfFile     = "nats.conf"     // the server's configuration; yours to edit
	accountsFile = "accounts.conf" // included by it; rewritten at every change
	stateFile    = "access.json"   // who there is; no secrets
	keysDir      = "keys"          // the secret keys of the operator and the accounts
	credsDir     = "creds"         // the users' credentials
	tlsDir       = "tls"           // certificates made here
)

// SkeinCreds is Skein's own credentials, below the folder.
const SkeinCreds = credsDir + "/skein.creds"

const (
	operatorKey = "operator"
	skeinUser   = "skein" // the administrator that Skein is
)

// state is the content of the folder's state file.
type state struct {
	Prefix   string            `json:"prefix"`
	Operator string            `json:"operator"` // token; a server cannot be told another one while it runs
	Accounts map[string]string `json:"accounts"` // public keys, by name
	Tenants  []string          `json:"tenants"`
	Users    []User            `json:"users"`
}

// Folder is a folder of access. It is not safe for concurrent use; two
// processes do not change one at a time.
type Folder struct {
	dir   string
	state state
	now   func() time.Time
}

// Open opens a folder that Init has made.
func Open(dir string) (*Folder, error) {
	f := &Folder{dir: dir, now: time.Now}
	return f, f.load()
}

// TenantAccount returns the public key of a tenant's account, empty if it has none.
func (f *Folder) TenantAccount(tenant string) string { return f.state.Accounts[tenantAccount(tenant)] }

func (f *Folder) load() error {
	raw, err := os.ReadFile(f.path(stateFile))
	if err == nil {
		f.state = state{}
		err = json.Unmarshal(raw, &f.state)
	}
	if err == nil {
		err = f.names().Validate()
	}
	if err != nil {
		return &NoFolderError{Dir: f.dir, Err: err}
	}
	return nil
}

func (f *Folder) names() events.Names { return events.Names{Prefix: f.state.Prefix} }

func (f *Folder) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

// Account returns the public key of Skein's account, under which the server keeps its streams.
func (f *Folder) Account() string { return f.state.Accounts[skeinAccount] }

// Prefix returns the prefix of the subjects.
func (f *Folder) Prefix() string { return f.state.Prefix }

// Conf returns the path of the server's configuration.
func (f *Folder) Conf() string { return f.path(ConfFile) }

// Creds returns the path of Skein's own credentials.
func (f *Folder) Creds() string { return f.path(SkeinCreds) }

// CA returns the path of the authority that signed the server's certificate, if Init created
// one.
func (f *Folder) CA() (string, bool) {
	path := f.path(tlsDir, caFile)
	_, err := os.Stat(path)
	return path, err == nil
}

// Users lists the users, oldest first.
func (f *Folder) Users() []User { return slices.Clone(f.state.Users) }

// Add adds a user and returns the path of the credentials. reload reports whether the server
// must reload its configuration, as the tenant is new to it.
func (f *Folder) Add(u User) (creds string, reload bool, err error) {
	err = f.change(func() error {
		now := f.now().UTC().Truncate(time.Second)
		if err := u.check(f.names(), now); err != nil {
			return err
		}
		for _, other := range f.state.Users {
			if other.Name == u.Name && accountOf(other) == accountOf(u) && other.State(now) == "active" {
				return &ExistsError{What: "a user " + u.Name, Hint: "revoke it first, or choose another name"}
			}
		}
		account := accountOf(u)
		if reload, err = f.ensureAccount(account, u.Tenant); err != nil {
			return err
		}
		body, err := f.credentials(&u, account, now)
		if err != nil {
			return err
		}
		f.state.Users = append(f.state.Users, u)
		creds = f.path(credsDir, u.file())
		// Known before it can be used: what is not listed cannot be revoked.
		if err := f.save(); err != nil {
			return err
		}
		return writeFile(creds, body)
	})
	return creds, reload, err
}

// AddTenant adds a tenant, unless there is one, and returns the public key of its account. reload
// reports whether the server must reload its configuration, as the tenant is new to it.
func (f *Folder) AddTenant(tenant string) (account string, reload bool, err error) {
	err = f.change(func() error {
		if !events.ValidTenant(tenant) {
			return badTenant(tenant)
		}
		reload, err = f.ensureAccount(tenantAccount(tenant), tenant)
		if err != nil || !reload {
			return err
		}
		return f.save()
	})
	return f.TenantAccount(tenant), reload, err
}

// Revoke takes a user's right to connect away. The server does so when it has
// read its configuration again: then it also ends the user's connections.
func (f *Folder) Revoke(tenant, name string) error {
	return f.change(func() error {
		now := f.now().UTC().Truncate(time.Second)
		found := false
		for i := range f.state.Users {
			u := &f.state.Users[i]
			if u.Name == name && u.Tenant == tenant && u.Revoked == nil {
				u.Revoked, found = &now, true
				if err := os.Remove(f.path(credsDir, u.file())); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			}
		}
		if !found {
			return &NoUserError{Tenant: tenant, Name: name}
		}
		return f.save()
	})
}

// change does a change while no other process does one, on the folder as it is.
func (f *Folder) change(do func() error) error {
	release, err := embedded.LockFolder(f.dir)
	if err != nil {
		var busy *embedded.StoreInUseError
		if errors.As(err, &busy) {
			return &BusyError{Dir: f.dir}
		}
		return err
	}
	defer release()
	if err := f.load(); err != nil {
		return err
	}
	return do()
}

// credentials makes a user's credentials.
func (f *Folder) credentials(u *User, account string, now time.Time) ([]byte, error) {
	pair, err := f.key(account)
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	return issue(f.names(), u, pair, now)
}

// ensureAccount makes an account, which may be a tenant's, unless there is one. It reports whether
// it is new.
func (f *Folder) ensureAccount(account, tenant string) (made bool, err error) {
	if _, known := f.state.Accounts[account]; known {
		return false, nil
	}
	if err := f.newAccount(account); err != nil {
		return false, err
	}
	if tenant != "" {
		f.state.Tenants = append(f.state.Tenants, tenant)
	}
	return true, nil
}

// newAccount makes an account's key.
func (f *Folder) newAccount(name string) error {
	pair, err := nkeys.CreateAccount()
	if err != nil {
		return err
	}
	defer pair.Wipe()
	f.state.Accounts[name], err = f.keep(name, pair)
	return err
}

// keep stores a secret key, and returns the public one.
func (f *Folder) keep(name string, pair nkeys.KeyPair) (string, error) {
	public, err := pair.PublicKey()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	return public, writeFile(f.keyFile(name), append(seed, '\n'))
}

func (f *Folder) keyFile(name string) string {
	safe := []byte(name)
	for i, c := range safe {
		if c == ' ' {
			safe[i] = '.'
		}
	}
	return f.path(keysDir, string(safe)+".nk")
}

// key reads a secret key.
func (f *Folder) key(name string) (nkeys.KeyPair, error) {
	raw, err := os.ReadFile(f.keyFile(name))
	if err != nil {
		return nil, fmt.Errorf("access: the key of %s is needed: %w", name, err)
	}
	pair, err := nkeys.ParseDecoratedNKey(raw)
	if err != nil { // whose text might hold what is in the file
		return nil, fmt.Errorf("access: %s is not a key; restore it from a backup", f.keyFile(name))
	}
	return pair, nil
}

// save writes what the folder knows, and what the server is to know of it.
func (f *Folder) save() error {
	body, err := json.Marshal(f.state, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	accounts, err := f.accounts()
	if err != nil {
		return err
	}
	if err := writeFile(f.path(stateFile), append(body, '\n')); err != nil {
		return err
	}
	return writeFile(f.path(accountsFile), accounts)
}

// writeFile writes a file whole or not at all, for its owner only.
func writeFile(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone, if it was renamed
	_, err = file.Write(body)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
