package commands

import (
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// concealClaim replaces the command id of a writer.claim, so that the log does not contain the
// caller's id. The token is derived from that id and the store's secret, so a repeat has the same
// token on every process. The log only holds digests of the id and the token.
func concealClaim(secret []byte, c *thread.Command) {
	if _, claims := c.Parts[0].Data.(events.ClaimWriter); !claims {
		return
	}
	c.Repeat, c.Token, c.ID = c.ID, events.WriterToken(secret, c.Tenant, c.ID), events.WriterCommandID(c.ID)
}

// withToken adds the token, which is not in the log, to the reply of a writer.claim or
// writer.renew. To the reply of a renewal that changed nothing it also adds when the hold ends.
func withToken(r *events.Reply, c *thread.Command, until func(token string) string) (*events.Reply, error) {
	if c == nil {
		return r, nil
	}
	token := ""
	switch d := c.Parts[0].Data.(type) {
	case events.ClaimWriter:
		token = c.Token
	case events.RenewWriter:
		token = d.Token
	default:
		return r, nil
	}
	end := until(token)
	if end == "" {
		return nil, events.Errorf(events.Held, "the claim was executed with another id; claim the thread again when the hold ends")
	}
	r.Result = &events.Result{Token: token, Until: end}
	return r, nil
}

// untilIn returns when the hold ends that the command's events begin or extend.
func untilIn(commit *events.Commit, commandID string) func(token string) string {
	return func(token string) string {
		for i := range commit.Events {
			if commit.Events[i].CommandID != commandID {
				continue
			}
			switch d := commit.Events[i].Data.(type) {
			case events.WriterClaimed:
				if d.TokenDigest == events.WriterDigest(token) {
					return d.Until
				}
			case events.WriterRenewed:
				return d.Until
			}
		}
		return ""
	}
}
