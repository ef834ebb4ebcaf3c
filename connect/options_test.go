package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

func write(t *testing.T, body []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.creds")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newUser(t *testing.T) (pair nkeys.KeyPair, public string, seed []byte) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if seed, err = pair.Seed(); err != nil {
		t.Fatal(err)
	}
	return pair, public, seed
}

// inbox returns the prefix of inboxes that options set.
func inbox(t *testing.T, o Options) string {
	t.Helper()
	opts, err := o.NATS("a test")
	if err != nil {
		t.Fatal(err)
	}
	all := nats.GetDefaultOptions()
	for _, apply := range opts {
		if err := apply(&all); err != nil {
			t.Fatal(err)
		}
	}
	return all.InboxPrefix
}

// The inboxes are those that the credentials allow.
func TestInboxOfCredentials(t *testing.T) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	for allow, want := range map[string]string{
		"_INBOX.app.>": "_INBOX.app", "_INBOX.>": "", "skein.timeline.acme.>": "", "": "", "_INBOX.*.>": "", "_INBOXES.x.>": "",
	} {
		_, public, seed := newUser(t)
		c := jwt.NewUserClaims(public)
		c.Sub.Allow.Add("skein.timeline.acme.>", allow)
		token, err := c.Encode(account)
		if err != nil {
			t.Fatal(err)
		}
		body, err := jwt.FormatUserConfig(token, seed)
		if err != nil {
			t.Fatal(err)
		}
		path := write(t, body)
		got := inbox(t, Options{Creds: path})
		if got == nats.InboxPrefix[:len(nats.InboxPrefix)-1] {
			got = ""
		}
		if got != want {
			t.Errorf("%q: the inboxes are %q, want %q", allow, got, want)
		}
		if got := inbox(t, Options{Creds: path, Inbox: "_MINE"}); got != "_MINE" {
			t.Errorf("the inboxes that were asked for are %q", got)
		}
	}
}

// A secret key alone is enough for a server that knows the public one.
func TestSecretKeyAlone(t *testing.T) {
	_, public, seed := newUser(t)
	ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Nkeys: []*server.NkeyUser{{Nkey: public}}})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	defer ns.Shutdown()
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	if _, err := nats.Connect(ns.ClientURL()); err == nil {
		t.Error("a stranger got in")
	}
	opts, err := Options{Creds: write(t, seed)}.NATS("a test")
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(ns.ClientURL(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// What cannot be used is refused before anything is connected, and nothing of it
// is told.
func TestBadCredentials(t *testing.T) {
	_, _, seed := newUser(t)
	half := append([]byte("-----BEGIN SOMETHING-----\n"), seed[:40]...)
	for name, path := range map[string]string{
		"no file": filepath.Join(t.TempDir(), "none"), "nothing": write(t, nil), "nonsense": write(t, []byte("hello")), "half a key": write(t, half),
	} {
		_, err := Options{Creds: path}.NATS("a test")
		if err == nil {
			t.Errorf("%s was taken", name)
		} else if strings.Contains(err.Error(), string(seed[:20])) {
			t.Errorf("%s: the error tells the key", name)
		}
	}
}
