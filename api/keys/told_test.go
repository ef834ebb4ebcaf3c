package keys_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/events"
)

// Nobody looks for a revoked key: the store is told of the change, and tells the gateways. Both
// look once an hour here, and the streams end long before.
func TestStore_TellsOfRevokedKeys(t *testing.T) {
	s, nc := newFolder(t)
	made, text := s.key(keys.Key{})
	other, second := s.key(keys.Key{})
	store, err := keys.OpenTold(s.dir, func(err error) { t.Error(err) })
	s.must(err)
	t.Cleanup(store.Close)
	s.must(store.Answer(nc, events.DefaultNames()))
	remotes := []*keys.Remote{keys.FollowTold(nc, events.DefaultNames(), nil), keys.FollowTold(nc, events.DefaultNames(), []string{"globex", "acme"})}
	urls := []string{s.serve(nc, store)}
	for _, r := range remotes {
		t.Cleanup(r.Close)
		for !r.Ready(time.Now()) {
			time.Sleep(5 * time.Millisecond) // until it has asked for the first time; the test's deadline ends it
		}
		urls = append(urls, s.serve(nc, r))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, k := range []struct{ id, text string }{{made.ID, text}, {other.ID, second}} { // the second when a change has been told
		var streams []io.Reader
		for _, url := range urls {
			streams = append(streams, s.stream(ctx, url, k.text))
		}
		s.must(s.folder.RevokeKey(k.id))
		revoked := time.Now()
		for i, stream := range streams {
			if _, err := io.ReadAll(stream); err != nil {
				t.Fatalf("the stream at edge %d, %v after the revocation: %v", i, time.Since(revoked), err)
			}
		}
		t.Logf("the streams ended %v after the revocation", time.Since(revoked))
	}
}

// stream returns what follows the first event of a stream.
func (s *stage) stream(ctx context.Context, url, token string) io.Reader {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/stream", nil)
	s.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	s.must(err)
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	b := bufio.NewReader(answer.Body)
	if line, err := b.ReadString('\n'); err != nil || line != "data: begun\n" {
		s.t.Fatalf("%d %q, %v", answer.StatusCode, line, err)
	}
	return b
}
