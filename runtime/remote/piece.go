package remote

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Limits of a request in pieces.
const (
	pieceBytes = 1 << 20         // of one piece, or half of the server's limit
	pieceAgain = 4               // how often a process may request each, on average
	maxWhole   = 256 << 20       // of a request, as a process accepts it
	pieceWait  = 5 * time.Second // after which a process requests a piece again
	pieceTries = 6               // for one piece
)

// pieces describes how to fetch a request that exceeds one message: a process requests
// one piece after the other, decrypts and joins them.
type pieces struct {
	Subject string `json:"subject"` // on which they are sent, each with its number in the header Skein-Piece
	Count   int    `json:"count"`
	Bytes   int64  `json:"bytes"`  // of the whole request, a JSON document like this one
	SHA256  string `json:"sha256"` // of it, in hex
	Key     string `json:"key"`    // of AES-256-GCM, in base64; the nonce is the piece's number in 12 bytes
}

// parcel is a request that is fetched in pieces. Other processes may see the subject of
// its pieces, so they are encrypted with a key that only the request has.
type parcel struct {
	head  pieces
	body  []byte
	size  int
	aead  cipher.AEAD
	given int
	seen  map[int]bool
}

func newParcel(names events.Names, body []byte, most int64) (*parcel, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("generate a key for the pieces of a request: %w", err)
	}
	aead, err := sealer(key)
	if err != nil {
		return nil, err
	}
	size := pieceBytes
	if most > 0 {
		size = int(min(most/2, pieceBytes))
	}
	sum := sha256.Sum256(body)
	return &parcel{
		head: pieces{
			Subject: names.Cancel(rand.Text()), Count: (len(body) + size - 1) / size, Bytes: int64(len(body)),
			SHA256: hex.EncodeToString(sum[:]), Key: base64.StdEncoding.EncodeToString(key),
		},
		body: body, size: size, aead: aead, seen: map[int]bool{},
	}, nil
}

func sealer(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the key of the pieces: %w", err)
	}
	return cipher.NewGCM(block)
}

// nonce is used once: each piece has one content, and each parcel a key of its own.
func nonce(n int) []byte {
	out := make([]byte, 12)
	binary.BigEndian.PutUint64(out[4:], uint64(n))
	return out
}

// give sends a piece. The error says what is wrong with the request for it.
func (p *parcel) give(nc *nats.Conn, n int) error {
	switch {
	case p == nil:
		return errors.New("asks for a piece of a request that has none")
	case n < 0 || n >= p.head.Count:
		return fmt.Errorf("asks for piece %d of %d", n, p.head.Count)
	case p.given >= pieceAgain*p.head.Count+pieceTries:
		return fmt.Errorf("asks for more than %d pieces of a request of %d", p.given, p.head.Count)
	}
	p.given++
	p.seen[n] = true
	part := p.body[n*p.size : min((n+1)*p.size, len(p.body))]
	m := &nats.Msg{
		Subject: p.head.Subject, Header: nats.Header{events.HeaderPiece: {strconv.Itoa(n)}},
		Data: p.aead.Seal(nil, nonce(n), part, nil),
	}
	_ = nc.PublishMsg(m) // a lost one is requested again
	return nil
}

// whole reports whether all pieces were requested.
func (p *parcel) whole() bool { return p != nil && len(p.seen) == p.head.Count }

// gather requests the pieces of a request and joins them. The error is temporary: the
// worker retries.
func gather(ctx context.Context, nc *nats.Conn, names events.Names, p *pieces, send func(any) error) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(p.Key)
	if err != nil || len(key) != 32 || p.Count < 1 || p.Bytes < 1 || p.Bytes > maxWhole || int64(p.Count) > p.Bytes || !isCancel(names, p.Subject) {
		return nil, errors.New("the pieces of the request cannot be fetched: their subject, key, count or size is invalid")
	}
	aead, err := sealer(key)
	if err != nil {
		return nil, err
	}
	came := make(chan *nats.Msg, 4)
	sub, err := nc.ChanSubscribe(p.Subject, came)
	if err != nil {
		return nil, again("the pieces of the request cannot be fetched: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	flush, cancel := context.WithTimeout(ctx, pieceWait)
	defer cancel()
	if err := nc.FlushWithContext(flush); err != nil {
		return nil, again("the pieces of the request cannot be fetched: %w", err)
	}
	body := make([]byte, 0, p.Bytes)
	for n := range p.Count {
		piece, err := askPiece(ctx, came, n, send)
		if err != nil {
			return nil, err
		}
		if body, err = aead.Open(body, nonce(n), piece, nil); err != nil {
			return nil, again("piece %d of the request is not what was sent", n)
		}
		if int64(len(body)) > p.Bytes {
			break
		}
	}
	if sum := sha256.Sum256(body); int64(len(body)) != p.Bytes || hex.EncodeToString(sum[:]) != p.SHA256 {
		return nil, again("the pieces of the request do not make the whole: %d of %d bytes", len(body), p.Bytes)
	}
	return body, nil
}

func askPiece(ctx context.Context, came <-chan *nats.Msg, n int, send func(any) error) ([]byte, error) {
	for range pieceTries {
		if err := send(message{Kind: kindPiece, Piece: n}); err != nil {
			return nil, again("piece %d of the request cannot be requested: %w", n, err)
		}
		wait := time.NewTimer(pieceWait)
		for waiting := true; waiting; {
			select {
			case m := <-came:
				if m.Header.Get(events.HeaderPiece) == strconv.Itoa(n) {
					wait.Stop()
					return m.Data, nil
				}
			case <-wait.C:
				waiting = false
			case <-ctx.Done():
				wait.Stop()
				return nil, context.Cause(ctx)
			}
		}
	}
	return nil, again("piece %d of the request did not come", n)
}

func again(format string, args ...any) error {
	return &runtime.RetryError{Err: fmt.Errorf(format, args...)}
}
