package thread

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// maxAnswered is the number of answers that a state keeps, the last ones. A repeat of an older answer is
// not_found.
const maxAnswered = 64

// answered is the answer that a person gave to a call. Its values are kept as digests.
type answered struct {
	Call   string `json:"call"`
	Is     string `json:"is"` // granted, denied or resolved
	Value  string `json:"value,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// answeredBy returns what the state keeps of an answer.
func answeredBy(d events.ResolveApproval) answered {
	a := answered{Call: d.CallID, Is: "resolved", Value: jsonDigest(d.Result), Reason: shortDigest([]byte(d.Reason))}
	switch {
	case d.Grant:
		a.Is, a.Value = "granted", jsonDigest(d.Arguments)
	case d.Deny:
		a.Is, a.Value = "denied", ""
	}
	return a
}

// jsonDigest returns the digest of a value in canonical form, "" of none.
func jsonDigest(value events.JSON) string {
	canonical := jsontext.Value(slices.Clone(value))
	_ = canonical.Canonicalize() // it was checked when it arrived
	return shortDigest(canonical)
}

// shortDigest returns the digest of bytes, "" of none.
func shortDigest(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// foldAnswer keeps an answer that an event records, and ignores other events. A call that is asked about
// again has no answer.
func (s *State) foldAnswer(e *events.Event) {
	var call string
	d, is := events.AnswerIn(e)
	switch asked := e.Data.(type) {
	case events.ApprovalRequested:
		call = asked.CallID
	default:
		if !is {
			return
		}
		call = d.CallID
	}
	list := slices.DeleteFunc(slices.Clone(s.Answered), func(a answered) bool { return a.Call == call })
	if is {
		list = append(list, answeredBy(d))
	}
	s.Answered = list[max(0, len(list)-maxAnswered):]
}

// checkAnswered returns nil if an answer repeats the one that its call was given, and may leave the
// reason out. The error is an illegal_transition if it is another, and otherwise unanswered.
func (m *decider) checkAnswered(d events.ResolveApproval, unanswered error) error {
	i := slices.IndexFunc(m.state.Answered, func(a answered) bool { return a.Call == d.CallID })
	if i < 0 || !events.IsNotFound(unanswered) {
		return unanswered
	}
	earlier, now := m.state.Answered[i], answeredBy(d)
	if now.Reason == "" {
		now.Reason = earlier.Reason
	}
	if now == earlier {
		return nil
	}
	return events.AnsweredOtherwise(d.CallID, earlier.Is)
}
