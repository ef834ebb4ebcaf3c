package edge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// pass stands for a credential. It ends with it.
type pass struct {
	Hash  string    `json:"hash"` // hex of the SHA-256 of the token's secret, which is stored nowhere
	Who   Principal `json:"who"`
	Until time.Time `json:"until"`
}

// passes are the tickets or the sessions of all edges with the same credentials for NATS. They are in
// the bucket, so they outlive the process that made them, and the server removes each when its time is
// over.
//
// A tenant has ofTenant keys, named by numbers, and a credential may use ofCredential of them, which a
// hash of its name selects. So a credential that signs in again and again replaces its
// own passes only, a tenant takes a bounded part of the bucket, and nothing needs to be counted. A
// token is TENANT.NUMBER.SECRET.
type passes struct {
	edge  *Edge
	kind  string        // ticket or session
	once  bool          // each is for one use
	lasts time.Duration // at most; with its credential it ends earlier

	ofCredential, ofTenant int // how many there are at once
}

// How many passes of a kind there are at once.
const (
	mostOfCredential = 1_000
	mostOfTenant     = 10_000
	passTries        = 8 // keys of a credential that are tried; then it replaces one of its own
)

// errNoPass says that no pass has a token, or that it has ended.
var errNoPass = errors.New("no such ticket or session")

// number returns the number of one of a credential's keys.
func (p *passes) number(credential string, n int) string {
	sum := sha256.Sum256([]byte(credential + " " + strconv.Itoa(n)))
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:8])%uint64(p.ofTenant), 10)
}

// add returns the token of a new pass.
func (p *passes) add(ctx context.Context, who Principal) (string, pass, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	secret := hex.EncodeToString(random)
	added := pass{hashOf(secret), who, time.Now().Add(p.lasts).UTC().Truncate(time.Second)}
	value, err := json.Marshal(added)
	if err != nil {
		return "", pass{}, err
	}
	replaced, at := "", uint64(0) // the oldest that was found and may be replaced
	for range passTries {
		number := p.number(who.credential(), mathrand.N(p.ofCredential))
		err := p.edge.putPass(ctx, p.key(who.Tenant, number), value, p.lasts, 0)
		if err == nil {
			return who.Tenant + "." + number + "." + secret, added, nil
		}
		if !errors.Is(err, errPassTaken) {
			return "", pass{}, err
		}
		if seq, ok := p.mayReplace(ctx, who, number); ok && (at == 0 || seq < at) {
			replaced, at = number, seq
		}
	}
	if at > 0 {
		err := p.edge.putPass(ctx, p.key(who.Tenant, replaced), value, p.lasts, at)
		if err == nil {
			return who.Tenant + "." + replaced + "." + secret, added, nil
		}
		if !errors.Is(err, errPassTaken) {
			return "", pass{}, err
		}
	}
	return "", pass{}, busy("the tenant", p.kind+"s", time.Minute)
}

// mayReplace reports whether a principal's pass may replace the one at a number: its own, or one whose
// credential has ended. It returns its sequence.
func (p *passes) mayReplace(ctx context.Context, who Principal, number string) (uint64, bool) {
	old, seq, err := p.edge.getPass(ctx, p.key(who.Tenant, number))
	if err != nil {
		return 0, false
	}
	if old.Who.credential() == who.credential() {
		return seq, true
	}
	_, err = p.edge.resume(ctx, old.Who)
	return seq, events.HasCode(err, events.Unauthorized)
}

// find returns the principal of a token, and removes it if it is for one use. The error is errNoPass,
// or an unavailable.
func (p *passes) find(ctx context.Context, token string) (Principal, error) {
	key, found, seq, err := p.read(ctx, token)
	if err != nil {
		return Principal{}, err
	}
	if p.once {
		if err := p.edge.dropPass(ctx, key, seq); err != nil {
			return Principal{}, err
		}
	}
	if time.Now().After(found.Until) {
		return Principal{}, errNoPass
	}
	who, err := p.edge.resume(ctx, found.Who)
	if events.HasCode(err, events.Unauthorized) {
		err = errNoPass
	}
	return who, err
}

// remove ends the pass of a token, if there is one.
func (p *passes) remove(ctx context.Context, token string) error {
	key, _, seq, err := p.read(ctx, token)
	if err == nil {
		err = p.edge.dropPass(ctx, key, seq)
	}
	if errors.Is(err, errNoPass) {
		return nil
	}
	return err
}

// read returns the pass of a token.
func (p *passes) read(ctx context.Context, token string) (key string, found pass, seq uint64, err error) {
	tenant, rest, _ := strings.Cut(token, ".")
	number, secret, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(number)
	serves := p.edge.opts.Serves
	switch {
	case err != nil || n < 0 || n >= p.ofTenant || strconv.Itoa(n) != number, len(secret) != 64,
		!events.ValidTenant(tenant), len(serves) > 0 && !slices.Contains(serves, tenant):
		return "", pass{}, 0, errNoPass
	}
	key = p.key(tenant, number)
	found, seq, err = p.edge.getPass(ctx, key)
	if err == nil && (subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(found.Hash)) != 1 || found.Who.Tenant != tenant) {
		err = errNoPass
	}
	return key, found, seq, err
}

func (p *passes) key(tenant, number string) string {
	return p.edge.opts.Names.Session(p.edge.opts.Realm, p.kind, tenant, number)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Resumer is an Authenticator that returns the principal which was authenticated earlier, perhaps by
// another edge, as it is now: it is unauthorized if the credential has ended. Without it, the
// principal is taken as it was.
type Resumer interface {
	Resume(ctx context.Context, p Principal) (Principal, error)
}

func (e *Edge) resume(ctx context.Context, p Principal) (Principal, error) {
	if auth, ok := e.opts.Auth.(Resumer); ok {
		return auth.Resume(ctx, p)
	}
	return p, nil
}

// byPass returns the principal of a token. The error is missing if there is none.
func (p *passes) byPass(r *http.Request, token string, missing error) (Principal, error) {
	who, err := p.find(r.Context(), token)
	if errors.Is(err, errNoPass) {
		err = missing
	}
	return who, err
}
