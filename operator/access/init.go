package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/events"
)

// InitOptions says what the server's configuration holds. The zero value of a
// field means its default.
type InitOptions struct {
	Listen    string   // where a nats-server by itself listens; default 127.0.0.1:4222
	Store     string   // its store; default ./skein-data
	Cert, Key string   // files of the server's certificate and its key; both or none
	Hosts     []string // instead of them: make a certificate for these names and addresses
	Prefix    string   // of the subjects; default skein
}

func (o InitOptions) withDefaults() InitOptions {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:4222"
	}
	if o.Store == "" {
		o.Store = "./skein-data"
	}
	if o.Prefix == "" {
		o.Prefix = events.DefaultPrefix
	}
	return o
}

func (o InitOptions) validate() error {
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return &BadUserError{"a certificate and its key go together: give both files"}
	case o.Cert != "" && len(o.Hosts) > 0:
		return &BadUserError{"give a certificate, or hosts to make one for, not both"}
	}
	return events.Names{Prefix: o.Prefix}.Validate()
}

// Init makes a folder: keys, the configuration, the credentials of Skein and of
// the server's administrator (of the system account). It changes no folder that
// is in use.
func Init(dir string, o InitOptions) (*Folder, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return nil, &ExistsError{What: dir, Hint: "choose a folder that is empty or not there"}
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// Whole or not at all: what is half made would look like a folder in use.
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".access-*") // 0700
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }() // gone, if it was renamed
	f := &Folder{dir: temp, now: time.Now, state: state{Prefix: o.Prefix, Accounts: map[string]string{}}}
	if err := f.fill(o, dir); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, dir); err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	return Open(dir)
}

// fill makes what is in a folder. final is where it will be.
func (f *Folder) fill(o InitOptions, final string) error {
	operator, err := nkeys.CreateOperator()
	if err != nil {
		return err
	}
	defer operator.Wipe()
	public, err := f.keep(operatorKey, operator)
	if err != nil {
		return err
	}
	for _, name := range ownAccounts() {
		if err := f.newAccount(name); err != nil {
			return err
		}
	}
	claims := jwt.NewOperatorClaims(public)
	claims.Name, claims.SystemAccount = "skein", f.state.Accounts[systemAccount]
	if f.state.Operator, err = claims.Encode(operator); err != nil {
		return err
	}
	now := f.now().UTC().Truncate(time.Second)
	skein := User{Name: skeinUser, Roles: []Role{Administrator}}
	body, err := f.credentials(&skein, skeinAccount, now)
	if err != nil {
		return err
	}
	if err := writeFile(f.path(SkeinCreds), body); err != nil {
		return err
	}
	system := User{Name: "system"}
	if body, err = f.credentials(&system, systemAccount, now); err != nil {
		return err
	}
	if err := writeFile(f.path(credsDir, system.file()), body); err != nil {
		return err
	}
	f.state.Users = append(f.state.Users, skein)
	cert, key := o.Cert, o.Key
	if len(o.Hosts) > 0 {
		if err := makeCertificates(f.path(tlsDir), o.Hosts, now); err != nil {
			return err
		}
		// Relative to where the server is started would be wrong sooner or later.
		if final, err = filepath.Abs(final); err != nil {
			return err
		}
		cert, key = filepath.Join(final, tlsDir, certFile), filepath.Join(final, tlsDir, keyFile)
	}
	if err := writeFile(f.path(ConfFile), conf(o, cert, key)); err != nil {
		return err
	}
	return f.save()
}
