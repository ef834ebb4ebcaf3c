package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificateEvery is how often the files of a certificate are looked at, while connections
// are made.
const certificateEvery = time.Second

// certificate is a certificate in files, which may be replaced while it is in use.
type certificate struct {
	cert, key string
	warn      func(error) // called once when new files cannot be used; the old ones stay in use

	mu     sync.Mutex
	pair   *tls.Certificate
	seen   [2]time.Time // when the files were changed that were read
	looked time.Time
}

// openCertificate reads a certificate and its key.
func openCertificate(cert, key string, warn func(error)) (*certificate, error) {
	c := &certificate{cert: cert, key: key, warn: warn}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c, c.refresh(time.Now())
}

// get returns the certificate as the files are.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) >= certificateEvery {
		if err := c.refresh(now); err != nil {
			c.warn(err)
		}
	}
	return c.pair, nil
}

// refresh reads the files if they have changed. The caller holds mu.
func (c *certificate) refresh(now time.Time) error {
	c.looked = now
	var times [2]time.Time
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("--tls-cert: %w", err)
		}
		times[i] = info.ModTime()
	}
	if times == c.seen {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if c.pair != nil && err != nil {
		// Half of a replacement, perhaps: it is complete when both have changed.
		c.seen = times
		return errors.Join(errors.New("--tls-cert: the new files cannot be used; the old certificate stays in use"), err)
	}
	if err != nil {
		return fmt.Errorf("--tls-cert: %w", err)
	}
	c.pair, c.seen = &pair, times
	return nil
}
