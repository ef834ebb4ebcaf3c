package events

import (
	"github.com/go-json-experiment/json"
)

// Reasons why a call has no result.
const (
	CallUnanswered = "the run ended before this was answered"                        // by a person
	CallUnfinished = "the run ended before the agent that was asked had answered"    // on a thread of its own
	CallUnmade     = "the run ended before this call had a result"                   // of any other tool
	CallLeft       = "the conversation was forked before this call had a result"     // in the fork
	CallUnknown    = "the conversation was imported without the result of this call" // by the import
)

// CallFailure is the state of a part of type tool-NAME whose call failed.
const CallFailure = "output-error"

// FailedCall returns the part of a call with the reason why it has no result.
func FailedCall(part JSON, reason string) JSON {
	var fields map[string]JSON
	if json.Unmarshal(part, &fields) != nil || fields == nil {
		return part
	}
	fields["state"], fields["output"], fields["errorText"] = Quote(CallFailure), Quote(reason), Quote(reason)
	raw, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil { // it was JSON before
		return part
	}
	return raw
}
