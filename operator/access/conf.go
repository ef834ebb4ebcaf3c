package access

import (
	"bytes"
	"fmt"
	"strconv"
)

// accounts writes the part of the server's configuration that says who there is:
// the operator, and every account, signed. The users are not in it but for those
// who were revoked.
func (f *Folder) accounts() ([]byte, error) {
	operator, err := f.key(operatorKey)
	if err != nil {
		return nil, err
	}
	defer operator.Wipe()
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Written by skein access at every change; do not edit.\n\noperator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n",
		f.state.Operator, f.state.Accounts[systemAccount])
	write := func(name, tenant string) error {
		c := claims(f.names(), name, tenant, f.state.Accounts)
		for _, u := range f.state.Users {
			if u.Revoked != nil && accountOf(u) == name {
				c.RevokeAt(u.Key, *u.Revoked)
			}
		}
		token, err := sign(operator, c)
		if err == nil {
			fmt.Fprintf(&out, "  # %s\n  %s: %s\n", name, f.state.Accounts[name], token)
		}
		return err
	}
	for _, name := range ownAccounts() {
		if _, made := f.state.Accounts[name]; !made { // an older folder without gateways
			continue
		}
		if err := write(name, ""); err != nil {
			return nil, err
		}
	}
	for _, tenant := range f.state.Tenants {
		if err := write(tenantAccount(tenant), tenant); err != nil {
			return nil, err
		}
	}
	out.WriteString("}\n")
	return out.Bytes(), nil
}

// conf writes the server's configuration, once: it is the operator's to edit.
func conf(o InitOptions, cert, key string) []byte {
	tls := "# tls {\n#   cert_file: \"/path/to/cert.pem\"\n#   key_file: \"/path/to/key.pem\"\n#   timeout: 10\n# }\n"
	if cert != "" {
		tls = fmt.Sprintf("tls {\n  cert_file: %s\n  key_file: %s\n  min_version: \"1.3\"\n  timeout: 10 # seconds for a handshake\n}\n", strconv.Quote(cert), strconv.Quote(key))
	}
	return fmt.Appendf(nil, `# A nats-server for Skein, with accounts. Use it in one of two ways:
#
#   skein serve --access FOLDER
#   nats-server -c FOLDER/nats.conf, and skein serve --nats URL --creds FOLDER/%s
#
# Of this file skein serve takes the accounts, tls and limits; where it listens and
# keeps its store is said by its own flags.

server_name: skein
listen: %s

# Nobody's password or messages should cross a network as they are: add this before
# the server listens anywhere but on loopback.
%s
# The largest message, and so the largest commit.
max_payload: 4MB

# A client that does not read its replies must not block Skein, which sends the replies
# of all. A reader that lags is sent no more until it has caught up.
no_fast_producer_stall: true

# Nearly every message of Skein's has a subject of its own.
disable_sublist_cache: true

# A client that answers no ping for 10 to 15 s is disconnected: until then a Skein that
# hangs is sent its share of the requests. nats-server's own are two minutes and two.
ping_interval: "5s"
ping_max: 2

jetstream {
  store_dir: %s

  # Every acknowledgement waits for fsync.
  sync_interval: always
}

include "%s"
`, SkeinCreds, strconv.Quote(o.Listen), tls, strconv.Quote(o.Store), accountsFile)
}
