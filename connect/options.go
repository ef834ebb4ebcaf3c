package connect

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Options configures a connection. The zero value connects without credentials, and
// trusts what the system trusts.
type Options struct {
	Creds string // file of credentials (a token and a secret key), or of a secret key (NKey) alone
	CA    string // file of certificate authorities to trust, instead of the system's
	Inbox string // prefix of inboxes; default what the credentials allow, else _INBOX

	// Within is how long a server may take to let a connection in; default and maximum 10 s.
	Within time.Duration
}

// greetWithin is how long a server may take to let a connection in: to greet it, to shake
// hands over TLS, and to check its credentials. On a machine that has much else to do these
// take longer than the 2 s of nats.go, and a client that does not wait adds its next attempt to
// the load.
const greetWithin = 10 * time.Second

// NATS returns the options for nats.Connect, under a name for the server's list of
// connections. A connection that is lost later
// reconnects by itself, and reads the file of credentials again.
func (o Options) NATS(name string) ([]nats.Option, error) {
	within := greetWithin
	if o.Within > 0 {
		within = min(within, o.Within)
	}
	opts := []nats.Option{
		nats.Name(name), nats.Timeout(within), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		// A server that hangs closes no connection. One that does not answer is left after
		// 10 to 15 s; the default of nats.go is four to six minutes.
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	inbox := o.Inbox
	if o.Creds != "" {
		credentials, allowed, err := o.credentials()
		if err != nil {
			return nil, err
		}
		opts = append(opts, credentials)
		if inbox == "" {
			inbox = allowed
		}
	}
	if inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(inbox))
	}
	return opts, nil
}

// credentials returns the option for the file of credentials, and the prefix of inboxes
// that they permit, if they name one.
func (o Options) credentials() (nats.Option, string, error) {
	raw, err := os.ReadFile(o.Creds)
	if err != nil {
		return nil, "", fmt.Errorf("credentials: %w", err)
	}
	defer clear(raw)
	token, err := nkeys.ParseDecoratedJWT(raw)
	if err == nil && strings.Count(token, ".") == 2 {
		return nats.UserCredentials(o.Creds), inboxOf(token), nil
	}
	option, err := nats.NkeyOptionFromSeed(o.Creds)
	if err != nil {
		return nil, "", errors.New("credentials: the file " + o.Creds + " holds neither a user's token nor a secret key of a user")
	}
	return option, "", nil
}

// inboxOf returns the prefix of inboxes to which a token lets its user subscribe, if it is
// not the usual one. It only reads the token, which the server checks.
func inboxOf(token string) string {
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		return ""
	}
	var claims struct {
		NATS struct {
			Sub struct {
				Allow []string `json:"allow"`
			} `json:"sub"`
		} `json:"nats"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	for _, subject := range claims.NATS.Sub.Allow {
		prefix, all := strings.CutSuffix(subject, ".>")
		if all && strings.HasPrefix(prefix, nats.InboxPrefix) && !strings.ContainsAny(prefix, "*> ") {
			return prefix
		}
	}
	return ""
}
