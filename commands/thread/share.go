package thread

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// share is a share of the thread that is not revoked. It may have expired.
type share struct {
	ID    string      `json:"id"`
	Until events.Time `json:"until,omitzero"` // 0: it does not expire
}

// placeOfShare returns the index of a share in the state, -1 if there is none.
func (s *State) placeOfShare(id string) int {
	return slices.IndexFunc(s.Shares, func(one share) bool { return one.ID == id })
}

// foldShare applies an event of the thread's shares, and ignores others.
func (s *State) foldShare(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ShareCreated:
		one := share{ID: d.ID}
		one.Until, _ = events.ParseTime(d.ExpiresAt)
		s.Shares = append(slices.Clip(s.Shares), one)
	case events.ShareRevoked:
		s.Shares = slices.DeleteFunc(slices.Clone(s.Shares), func(one share) bool { return one.ID == d.ID })
	}
}

func (m *decider) shareThread(d events.ShareThread) error {
	if len(m.command.ShareKey) == 0 {
		return events.Errorf(events.InvalidRequest, "thread.share: its reply alone holds the token, so it cannot be submitted; send it as a command")
	}
	if d.ExpiresAt != "" {
		end, err := events.ParseTime(d.ExpiresAt)
		if err != nil {
			return events.Invalid("/expiresAt", "%w", err)
		}
		if end <= m.at {
			return events.Invalid("/expiresAt", "a share cannot end at %s, which is past", d.ExpiresAt)
		}
	}
	inForce := 0
	for _, one := range m.state.Shares {
		if one.Until == 0 || one.Until > m.at {
			inForce++
		}
	}
	if inForce >= events.MaxShares {
		return events.Errorf(events.QueueFull, "the thread has %d shares, and more are not allowed; revoke one with thread.unshare", inForce)
	}
	c := m.command
	id := m.id("", events.SharePrefix)
	token := events.ShareToken(c.ShareKey, c.Tenant, c.ThreadID, c.ID, id)
	m.emit(events.ShareCreatedType, id, "", events.ShareCreated{ID: id, Digest: events.ShareDigest(token), ExpiresAt: d.ExpiresAt})
	return nil
}

func (m *decider) unshareThread(d events.UnshareThread) error {
	if m.state.placeOfShare(d.ShareID) < 0 {
		return events.Missing("share", d.ShareID)
	}
	m.emit(events.ShareRevokedType, d.ShareID, "", events.ShareRevoked{ID: d.ShareID})
	return nil
}

func (r preconditions) ShareCreated(e *events.Event, d events.ShareCreated) error {
	return firstFault(
		about(e, d.ID, ""),
		unless(r.state.placeOfShare(d.ID) < 0, "share %.80q exists already", d.ID),
		unless(len(d.Digest) == 64, "it has no digest of a token"),
	)
}

func (r preconditions) ShareRevoked(e *events.Event, d events.ShareRevoked) error {
	return firstFault(about(e, d.ID, ""), unless(r.state.placeOfShare(d.ID) >= 0, "there is no share %.80q", d.ID))
}
