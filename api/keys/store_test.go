package keys_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/skeintest"
)

// stage is an edge whose principals have keys of a folder. Its route /api/who answers with the
// principal, /api/stream with a stream that nothing but its context ends.
type stage struct {
	t      *testing.T
	dir    string
	folder *access.Folder
	url    string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s, nc := newFolder(t)
	store, err := keys.Open(s.dir, func(err error) { t.Error(err) })
	s.must(err)
	t.Cleanup(store.Close)
	s.url = s.serve(nc, store)
	return s
}

// newFolder returns a stage whose edges serve makes, and a connection for them.
func newFolder(t *testing.T) (*stage, *nats.Conn) {
	t.Helper()
	s := &stage{t: t, dir: filepath.Join(t.TempDir(), "access")}
	var err error
	s.folder, err = access.Init(s.dir, access.InitOptions{})
	s.must(err)
	nc := natstest.Dial(t, skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" }).Addresses().NATS)
	return s, nc
}

// serve returns the URL of an edge.
func (s *stage) serve(nc *nats.Conn, auth edge.Authenticator) string {
	s.t.Helper()
	e, err := edge.New(edge.Options{Conn: nc, Auth: auth})
	s.must(err)
	e.Handle("GET /api/who", func(w http.ResponseWriter, _ *http.Request, c *edge.Caller) error {
		edge.WriteJSON(w, http.StatusOK, c.Principal.Subject+" of "+c.Tenant+" "+strings.Join(c.Roles, ","))
		return nil
	})
	e.Handle("GET /api/stream", func(w http.ResponseWriter, r *http.Request, _ *edge.Caller) error {
		return stream.Serve(w, r, stream.Protocol{}, func(ctx context.Context, out *stream.Writer) error {
			if err := out.Send(stream.Frame{Data: []byte("begun")}); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
	})
	server := httptest.NewServer(e)
	s.t.Cleanup(server.Close)
	return server.URL
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) key(k keys.Key) (keys.Key, string) {
	s.t.Helper()
	k.Tenant, k.Roles = "acme", []string{"publisher"}
	made, text, err := s.folder.AddKey(k)
	s.must(err)
	return made, text
}

func (s *stage) ask(path, token string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	s.must(err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	s.must(err)
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// until waits until a key is answered with a status.
func (s *stage) until(token string, status int) {
	s.t.Helper()
	for s.ask("/api/who", token).StatusCode != status {
		time.Sleep(5 * time.Millisecond) // until the server has noticed; the test's deadline ends it
	}
}

// A key that is made while a server runs works, and nothing that only resembles it does. No
// file has its secret.
func TestStore_Authenticates(t *testing.T) {
	s := newStage(t)
	made, text := s.key(keys.Key{})
	s.until(text, http.StatusOK)
	body, err := io.ReadAll(s.ask("/api/who", text).Body)
	s.must(err)
	if want := `"key:` + made.ID + ` of acme publisher"`; strings.TrimSpace(string(body)) != want {
		t.Errorf("%s, want %s", body, want)
	}
	secret := strings.TrimPrefix(text, keys.Prefix+made.ID+"_")
	if len(secret) != 64 {
		t.Errorf("the secret has %d digits", len(secret))
	}
	for _, wrong := range []string{
		"", "x", keys.Prefix, keys.Prefix + made.ID, keys.Prefix + made.ID + "_", text + "0", text[:len(text)-1], strings.ToUpper(text),
		keys.Prefix + "0" + made.ID[1:] + "x_" + secret, keys.Prefix + made.ID + "_" + made.Hash, secret,
	} {
		answer := s.ask("/api/who", wrong)
		if answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q: %d %q", wrong, answer.StatusCode, answer.Header.Get("WWW-Authenticate"))
		}
	}
	entries, err := os.ReadDir(s.dir)
	s.must(err)
	for _, e := range entries {
		if raw, err := os.ReadFile(filepath.Join(s.dir, e.Name())); err == nil && strings.Contains(string(raw), secret) {
			t.Errorf("%s has the secret", e.Name())
		}
	}
	for { // the last use is written a moment later
		_, used, err := s.folder.Keys()
		s.must(err)
		if !used[made.ID].IsZero() {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// What a key is doing ends when the key is revoked or expires; other keys go on.
func TestStore_EndsWhatEndedKeysDo(t *testing.T) {
	s := newStage(t)
	revoked, first := s.key(keys.Key{})
	_, third := s.key(keys.Key{})
	s.until(third, http.StatusOK)
	open := func(token string) *bufio.Reader {
		r := bufio.NewReader(s.ask("/api/stream", token).Body)
		if line, err := r.ReadString('\n'); err != nil || line != "data: begun\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return r
	}
	ofRevoked, ofOther := open(first), open(third)
	second, ofExpired := "", (*bufio.Reader)(nil)
	for lasts := 2 * time.Second; ofExpired == nil; lasts *= 2 { // until a stream begins before the key ends
		soon := time.Now().Add(lasts)
		var made keys.Key
		made, second = s.key(keys.Key{Expires: &soon})
		for time.Now().Before(*made.Expires) && ofExpired == nil {
			if s.ask("/api/who", second).StatusCode == http.StatusOK {
				if answer := s.ask("/api/stream", second); answer.StatusCode == http.StatusOK {
					ofExpired = bufio.NewReader(answer.Body)
				}
			}
		}
	}
	s.must(s.folder.RevokeKey(revoked.ID))
	for _, ended := range []*bufio.Reader{ofRevoked, ofExpired} {
		if _, err := io.ReadAll(ended); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	}
	for _, token := range []string{first, second} {
		s.until(token, http.StatusUnauthorized)
	}
	if status := s.ask("/api/who", third).StatusCode; status != http.StatusOK {
		t.Errorf("the other key: %d", status)
	}
	if ofOther.Buffered() > 1 { // the empty line of its event
		t.Errorf("the other stream has more to read")
	}
}

// A file that cannot be read changes nothing.
func TestStore_KeepsKeysOfADamagedFile(t *testing.T) {
	dir := t.TempDir()
	folder, err := access.Init(filepath.Join(dir, "access"), access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := folder.AddKey(keys.Key{Tenant: "acme", Roles: []string{"publisher"}})
	if err != nil {
		t.Fatal(err)
	}
	warned := make(chan error, 16)
	store, err := keys.Open(filepath.Join(dir, "access"), func(err error) { warned <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := os.WriteFile(filepath.Join(dir, "access", keys.File), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-warned
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+text)
	if _, err := store.Authenticate(r); err != nil {
		t.Error(err)
	}
}
