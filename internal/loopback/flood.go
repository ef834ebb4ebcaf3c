package loopback

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nkeys"
	"github.com/skein-threads/skein/internal/retry"
)

// Flood says what a neighbour sends, as fast as its connections take it, and without waiting for
// answers, as a hostile or broken client does.
type Flood struct {
	URL     string `json:"url"`
	Creds   string `json:"creds,omitzero"` // file of credentials; none where the server wants none
	Inbox   string `json:"inbox"`          // prefix of the reply subjects
	Subject string `json:"subject"`
	Body    string `json:"body"`
	Conns   int    `json:"conns"`
	Unread  bool   `json:"unread,omitzero"` // answers stay unread
}

// Run floods until ctx ends, and returns how many messages were written, and how
// often a connection was ended by the server. What is answered is dropped.
func (f Flood) Run(ctx context.Context) (sent, ended int64) {
	var messages, ends atomic.Int64
	done := make(chan struct{}, f.Conns)
	for range f.Conns {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				n, err := f.connection(ctx)
				messages.Add(n)
				if err != nil && ctx.Err() == nil {
					ends.Add(1)
					retry.Sleep(ctx, 10*time.Millisecond)
				}
			}
		}()
	}
	for range f.Conns {
		<-done
	}
	return messages.Load(), ends.Load()
}

// connection speaks NATS by hand, so that nothing slows it down.
func (f Flood) connection(ctx context.Context) (sent int64, err error) {
	at, err := url.Parse(f.URL)
	if err != nil {
		return 0, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	in := bufio.NewReader(conn)
	info, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	hello, err := f.hello(strings.TrimPrefix(info, "INFO "))
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s\r\nSUB %s.> 1\r\nPING\r\n", hello, f.Inbox); err != nil {
		return 0, err
	}
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "PONG") {
		return 0, fmt.Errorf("the server answered %q: %w", line, errors.Join(err, errors.New("it is no PONG")))
	}
	if !f.Unread {
		go func() { _, _ = io.Copy(io.Discard, in) }() // ends with the connection
	}
	const each = 256
	message := fmt.Sprintf("PUB %s %s.flood.x %d\r\n%s\r\n", f.Subject, f.Inbox, len(f.Body), f.Body)
	batch := []byte(strings.Repeat(message, each))
	for {
		if _, err := conn.Write(batch); err != nil {
			return sent, err
		}
		sent += each
	}
}

// hello answers the server's greeting.
func (f Flood) hello(greeting string) ([]byte, error) {
	var info struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal([]byte(greeting), &info); err != nil {
		return nil, err
	}
	hello := map[string]any{"verbose": false, "pedantic": false, "headers": true, "no_responders": true, "protocol": 1, "lang": "raw", "version": "0"}
	if f.Creds != "" {
		raw, err := os.ReadFile(f.Creds)
		if err != nil {
			return nil, err
		}
		if hello["jwt"], err = nkeys.ParseDecoratedJWT(raw); err != nil {
			return nil, err
		}
		pair, err := nkeys.ParseDecoratedUserNKey(raw)
		if err != nil {
			return nil, err
		}
		defer pair.Wipe()
		signed, err := pair.Sign([]byte(info.Nonce))
		if err != nil {
			return nil, err
		}
		hello["sig"] = base64.RawURLEncoding.EncodeToString(signed)
	}
	return json.Marshal(hello)
}
