package edge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// pass stands for a credential. It ends with it.
type pass struct {
	who   Principal
	until time.Time
}

// passes are the tickets or the sessions of an edge, by their tokens. They are in memory: a
// restart ends them. A token begins with the name of the edge that has it, so that others can
// ask it.
type passes struct {
	kind string // ticket or session
	once bool   // each is for one use
	edge string // its name; empty: no other edge asks

	mu      sync.Mutex
	of      map[string]pass
	holders map[string]*holder // by credential
	tenants map[string]int     // how many passes a tenant has
}

// holder is a credential that has passes.
type holder struct {
	tokens []string // oldest first; some of them may have ended
	live   int      // how many have not
}

// How many passes of a kind there are at once: one credential ends with each further one the
// oldest of its own, and a tenant with many credentials has no more, so that others have theirs.
const (
	mostOfCredential = 1_000
	mostOfTenant     = 10_000
	mostPasses       = 50_000
)

// add returns the token of a new pass.
func (p *passes) add(who Principal, lasts time.Duration, now time.Time) (string, pass, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", pass{}, err
	}
	token, made := hex.EncodeToString(random), pass{who, now.Add(lasts).UTC().Truncate(time.Second)}
	if p.edge != "" {
		token = p.edge + "." + token
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of, p.holders, p.tenants = map[string]pass{}, map[string]*holder{}, map[string]int{}
	}
	if err := p.room(who, now); err != nil {
		return "", pass{}, err
	}
	p.of[token] = made
	own := p.holders[who.credential()]
	if own == nil {
		own = new(holder)
		p.holders[who.credential()] = own
	}
	own.tokens, own.live = append(own.tokens, token), own.live+1
	p.tenants[who.Tenant]++
	return token, made, nil
}

// room makes room for a pass of a principal, or returns why there is none. The caller holds mu.
func (p *passes) room(who Principal, now time.Time) error {
	if len(p.of) >= mostPasses || p.tenants[who.Tenant] >= mostOfTenant {
		for token, old := range p.of {
			if old.ended(now) {
				p.drop(token)
			}
		}
	}
	if own := p.holders[who.credential()]; own != nil {
		if len(own.tokens) >= 2*mostOfCredential {
			own.tokens = slices.DeleteFunc(own.tokens, func(token string) bool { _, there := p.of[token]; return !there })
		}
		for own.live >= mostOfCredential {
			p.drop(own.tokens[0])
			own.tokens = own.tokens[1:]
		}
	}
	switch {
	case p.tenants[who.Tenant] >= mostOfTenant:
		return busy("the tenant", p.kind+"s", time.Minute)
	case len(p.of) >= mostPasses:
		return busy("the server", p.kind+"s", time.Minute)
	}
	return nil
}

// drop removes a pass, if it is there. The caller holds mu.
func (p *passes) drop(token string) {
	old, there := p.of[token]
	if !there {
		return
	}
	delete(p.of, token)
	if p.tenants[old.who.Tenant]--; p.tenants[old.who.Tenant] == 0 {
		delete(p.tenants, old.who.Tenant)
	}
	own := p.holders[old.who.credential()]
	if own.live--; own.live == 0 {
		delete(p.holders, old.who.credential())
	}
}

// ended reports whether a pass stands for its credential no longer.
func (p pass) ended(now time.Time) bool {
	return now.After(p.until) || !p.who.Expires.IsZero() && now.After(p.who.Expires) || p.who.Valid != nil && p.who.Valid.Err() != nil
}

// find returns the principal of a token, and removes it if it is for one use.
func (p *passes) find(token string, now time.Time) (Principal, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.of[token]
	if p.once {
		p.drop(token)
	}
	return found.who, ok && !found.ended(now)
}

func (p *passes) remove(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(token)
}

// peerRequest asks an edge for what one of its tokens stands for.
type peerRequest struct {
	Kind  string `json:"kind"` // ticket or session
	Token string `json:"token"`
	End   bool   `json:"end,omitzero"` // the session is over
}

// peerReply is what it stands for; Found is false for an unknown or used one.
type peerReply struct {
	Found bool      `json:"found"`
	Who   Principal `json:"who"`
}

// Resumer is an Authenticator that returns the principal which another edge authenticated by
// the same credentials, as it is now. Without it, a principal is taken as the other says.
type Resumer interface {
	Resume(ctx context.Context, p Principal) (Principal, error)
}

// answerPeers answers other edges that are shown tickets and sessions of this one.
func (e *Edge) answerPeers() error {
	if e.opts.Name == "" {
		return nil
	}
	var err error
	e.peers, err = e.opts.Conn.Subscribe(e.opts.Names.GatewayPass(e.opts.Name), func(m *nats.Msg) {
		var asked peerRequest
		if !e.opts.Names.Answerable(m.Reply) || json.Unmarshal(m.Data, &asked) != nil {
			return
		}
		body, err := json.Marshal(e.answerPeer(asked, time.Now()))
		if err == nil {
			_ = m.Respond(body) // the other edge refuses its request
		}
	})
	if err != nil {
		return err
	}
	return e.opts.Conn.Flush()
}

func (e *Edge) answerPeer(asked peerRequest, now time.Time) peerReply {
	for _, p := range []*passes{&e.tickets, &e.sessions} {
		switch {
		case p.kind != asked.Kind:
		case asked.End:
			p.remove(asked.Token)
		default:
			who, found := p.find(asked.Token, now)
			if !found {
				return peerReply{}
			}
			return peerReply{true, who}
		}
	}
	return peerReply{}
}

// stands returns the principal that a token stands for, here or at the edge that it names.
func (e *Edge) stands(r *http.Request, p *passes, token string) (Principal, bool) {
	other, foreign := p.elsewhere(token)
	if !foreign {
		return p.find(token, time.Now())
	}
	got, err := e.askPeer(r.Context(), other, peerRequest{Kind: p.kind, Token: token})
	if err != nil || !got.Found || !events.ValidTenant(got.Who.Tenant) {
		return Principal{}, false
	}
	if auth, ok := e.opts.Auth.(Resumer); ok {
		got.Who, err = auth.Resume(r.Context(), got.Who)
	}
	return got.Who, err == nil
}

// endPass ends a pass, here or at the edge that it names.
func (e *Edge) endPass(ctx context.Context, p *passes, token string) {
	if other, foreign := p.elsewhere(token); foreign {
		_, _ = e.askPeer(ctx, other, peerRequest{Kind: p.kind, Token: token, End: true}) // gone with its edge
		return
	}
	p.remove(token)
}

// elsewhere returns the name of the edge that has a token, if it is another one.
func (p *passes) elsewhere(token string) (string, bool) {
	i := strings.LastIndexByte(token, '.')
	if p.edge == "" || i < 0 || token[:i] == p.edge {
		return "", false
	}
	for part := range strings.SplitSeq(token[:i], ".") {
		if !events.ValidTenant(part) { // the same letters: one token of a subject
			return "", false
		}
	}
	return token[:i], len(token) < 256
}

func (e *Edge) askPeer(ctx context.Context, other string, asked peerRequest) (peerReply, error) {
	var got peerReply
	body, err := json.Marshal(asked)
	if err != nil {
		return got, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPeer)
	defer cancel()
	m, err := e.opts.Conn.RequestWithContext(ctx, e.opts.Names.GatewayPass(other), body)
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(m.Data, &got)
}
