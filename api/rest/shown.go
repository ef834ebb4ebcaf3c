package rest

import "reflect"

// shown is the OpenAPI description of a route with a handler of its own. The zero value is what its
// command or query says.
type shown struct {
	parameters []field
	body       string // one of those below; default the data of its command, none without one
	answer     string // one of those below, or the name of a document; default the command's reply
}

// Bodies and answers that are not the data, reply or answer of a row.
const (
	noBody       = "none"
	anyObject    = "object"
	fileBody     = "file content"
	noAnswer     = "no answer"
	jsonAnswer   = "any JSON"
	fileAnswer   = "content"
	streamAnswer = "events"
	socketAnswer = "socket"
)

// problemSchema is the schema of a refusal.
func problemSchema() node {
	text := node{"type": "string"}
	return node{
		"type": "object", "required": []string{"error"},
		"properties": node{"error": node{
			"type": "object", "required": []string{"type", "code", "message", "param"},
			"properties": node{"type": text, "code": text, "message": text, "param": text, "details": node{"type": "object"}},
		}},
	}
}

// begunSchema is the schema of the answer to what begins a run: a reply, and the run's ids.
func begunSchema() node {
	text := node{"type": "string"}
	return node{"allOf": []node{ref("Reply"), {
		"type": "object", "properties": node{"executionId": text, "reactionItemId": text, "queuedId": text},
	}}}
}

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
