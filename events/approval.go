package events

import "strings"

// ApprovalReason says why a person is asked to approve a call.
type ApprovalReason string

// The reasons of an approval request.
const (
	ApprovalManual     ApprovalReason = "manual"       // its tool requires approval of every call
	ApprovalMayHaveRun ApprovalReason = "may_have_run" // a lost worker may have made the call
	ApprovalQuestion   ApprovalReason = "question"     // the call is a question to a person, whose answer is its result
)

// Enum lists the reasons.
func (ApprovalReason) Enum() []string {
	return []string{string(ApprovalManual), string(ApprovalMayHaveRun), string(ApprovalQuestion)}
}

// ResolveApproval answers a request for approval: it grants the call, denies it, or supplies
// the call's result.
type ResolveApproval struct {
	CallID    string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Grant     bool   `json:"grant,omitzero" doc:"Grant the call."`
	Arguments JSON   `json:"arguments,omitzero" schema:"object" doc:"With grant: arguments that replace those asked for."`
	Deny      bool   `json:"deny,omitzero" doc:"Deny the call; the model is told."`
	Reason    string `json:"reason,omitzero" schema:"maxLength=65536" doc:"With grant or deny: the reason; with deny the model is told."`
	Result    JSON   `json:"result,omitzero" doc:"The result, instead of the call; an answer must fit the question's schema."`
}

// Check validates what spans more than one field.
func (d ResolveApproval) Check() error {
	answers := 0
	for _, given := range []bool{d.Grant, d.Deny, d.Result != nil} {
		if given {
			answers++
		}
	}
	switch {
	case answers != 1:
		return Invalid("", "exactly one of grant, deny and result is needed")
	case d.Arguments != nil && !d.Grant:
		return Invalid("/arguments", "only a grant has arguments")
	case d.Reason != "" && d.Result != nil:
		return Invalid("/reason", "a result has no reason")
	}
	return nil
}

// Granted returns the grant that the answer is, if it is one.
func (d ResolveApproval) Granted() GrantApproval {
	return GrantApproval{CallID: d.CallID, Arguments: d.Arguments, Comment: d.Reason}
}

// AnswerIn returns the answer to a call that an event records, and reports whether it records one.
func AnswerIn(e *Event) (ResolveApproval, bool) {
	switch d := e.Data.(type) {
	case ApprovalGranted:
		return ResolveApproval{CallID: d.CallID, Grant: true, Arguments: d.Arguments, Reason: d.Comment}, true
	case ApprovalDenied:
		return ResolveApproval{CallID: d.CallID, Deny: true, Reason: d.Comment}, true
	case ApprovalResolved:
		return ResolveApproval{CallID: d.CallID, Result: d.Result}, true
	}
	return ResolveApproval{}, false
}

// Differs returns what d says otherwise than an earlier answer to the same call, "" if it repeats that
// answer. A repeat may leave the reason out.
func (d ResolveApproval) Differs(earlier ResolveApproval) string {
	switch {
	case d.Grant != earlier.Grant || d.Deny != earlier.Deny:
		return "another decision"
	case !EqualJSON(d.Arguments, earlier.Arguments):
		return "other arguments"
	case !EqualJSON(d.Result, earlier.Result):
		return "another result"
	case d.Reason != "" && d.Reason != earlier.Reason:
		return "another reason"
	}
	return ""
}

// Constraint returns the rules of Check as JSON Schema.
func (ResolveApproval) Constraint() string {
	const no = `{"enum":[false,null]}`
	const none = `{"enum":["",null]}`
	return `{"anyOf":[` +
		`{"required":["grant"],"properties":{"grant":{"const":true},"deny":` + no + `},"not":{"required":["result"]}},` +
		`{"required":["deny"],"properties":{"deny":{"const":true},"grant":` + no + `,"arguments":{"type":"null"}},"not":{"required":["result"]}},` +
		`{"required":["result"],"properties":{"grant":` + no + `,"deny":` + no + `,"reason":` + none + `,"arguments":{"type":"null"}}}]}`
}

// denied is what the failure of a call that was denied says.
const denied = "the call was denied"

// Denial returns the text with which a call fails that was denied for a reason, which may be empty.
func Denial(reason string) string {
	if reason == "" {
		return denied
	}
	return denied + ": " + reason
}

// DenialReason returns the reason of a text of [Denial], empty if it has none.
func DenialReason(text string) string {
	if reason, is := strings.CutPrefix(text, denied+": "); is {
		return reason
	}
	return ""
}
