package embedded

import (
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

// Suspend keeps those users of an account from the server, for a while, that send
// the most on average: half as much as the one that sends most, and more. Their
// connections end, and new ones are refused. The account is named by its public key.
// It returns how many users that are.
func (s *Server) Suspend(account string, d time.Duration) (int, error) {
	s.reload.Lock()
	defer s.reload.Unlock()
	users, err := s.loudest(account)
	if err != nil || len(users) == 0 {
		return 0, err
	}
	now := time.Now()
	err = s.revoke(account, func(c *jwt.AccountClaims) {
		for _, user := range users {
			c.RevokeAt(user, now)
		}
	})
	if err != nil {
		return 0, err
	}
	time.AfterFunc(d, func() {
		s.reload.Lock()
		defer s.reload.Unlock()
		// As the configuration has the account, which may have changed meanwhile. A
		// server that has been shut down knows no account.
		_ = s.revoke(account, func(*jwt.AccountClaims) {})
	})
	return len(users), nil
}

// loudest returns the public keys of the users of an account that send the most.
func (s *Server) loudest(account string) ([]string, error) {
	list, err := s.nats.Connz(&server.ConnzOptions{Account: account, Username: true, Limit: 4096})
	if err != nil {
		return nil, fmt.Errorf("embedded: listing connections: %w", err)
	}
	rates, most := map[string]float64{}, 0.0
	for _, c := range list.Conns {
		rates[c.AuthorizedUser] += float64(c.InMsgs) / max(time.Since(c.Start).Seconds(), 0.1)
		most = max(most, rates[c.AuthorizedUser])
	}
	var users []string
	for user, rate := range rates {
		if user != "" && rate >= most/2 {
			users = append(users, user)
		}
	}
	return users, nil
}

// revoke tells the server of an account as the configuration has it, changed.
func (s *Server) revoke(account string, change func(*jwt.AccountClaims)) error {
	known, err := s.nats.LookupAccount(account)
	if err != nil {
		return fmt.Errorf("embedded: account %s: %w", account, err)
	}
	token, err := s.nats.AccountResolver().Fetch(account)
	if err != nil {
		return fmt.Errorf("embedded: account %s: %w", account, err)
	}
	claims, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		return fmt.Errorf("embedded: account %s: %w", account, err)
	}
	change(claims)
	s.nats.UpdateAccountClaims(known, claims)
	return nil
}

// dropped begins the subjects, to which nobody subscribes, of messages that are dropped.
const dropped = "_DROPPED."

// Drop drops what clients publish on subjects for a while, before it is delivered to anybody. It is
// for a server without accounts, where connections belong to nobody.
func (s *Server) Drop(subjects []string, d time.Duration) error {
	clients := s.nats.GlobalAccount()
	end := func() {
		for _, subject := range subjects {
			clients.RemoveMapping(subject)
		}
	}
	for _, subject := range subjects {
		if err := clients.AddMapping(subject, dropped+subject); err != nil {
			end()
			return fmt.Errorf("embedded: drop what is published on %s: %w", subject, err)
		}
	}
	time.AfterFunc(d, end)
	return nil
}
