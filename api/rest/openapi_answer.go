package rest

import (
	"strings"

	"github.com/skein-threads/skein/events"
)

// responses describes what a row answers.
func (d *description) responses(r Row) node {
	responses := node{r.status(): d.answer(r), "default": refusalAnswer()}
	unchanged := node{"description": "The caller has it already, as its If-None-Match says."}
	switch {
	case r.Query == "thread.get" || r.Query == "definition.get":
		responses["304"] = unchanged
	case r.shows.answer == fileAnswer:
		responses["206"], responses["304"] = node{"description": "The parts that Range names.", "content": mediaType("*/*", node{})}, unchanged
	case r.shows.answer == noAnswer:
		responses["206"], responses["304"] = d.answer(r), unchanged
	case r.shows.body == fileBody:
		responses["201"] = node{"description": "The file was created.", "content": mediaType("application/json", ref("File"))}
	case !raw(r) && (r.Command == "thread.fork" || r.Command == "thread.handoff"):
		responses["202"] = node{"description": "A summary is written first; then the thread is created.", "content": mediaType("application/json", ref("Reply"))}
	}
	return responses
}

// status returns the status of a row's success.
func (r Row) status() string {
	switch {
	case r.Command == "thread.react" || r.Command == "tool.queue":
		if !raw(r) {
			return "202"
		}
	case r.shows.answer == socketAnswer:
		return "101"
	case r.created != nil:
		return "201"
	}
	return "200"
}

func (d *description) answer(r Row) node {
	json := func(is any) node {
		return node{"description": "Done.", "content": mediaType("application/json", is)}
	}
	switch r.shows.answer {
	case noAnswer:
		return node{"description": "The headers."}
	case jsonAnswer:
		return json(node{"type": "object"})
	case fileAnswer:
		return node{"description": "The content.", "content": mediaType("*/*", node{})}
	case streamAnswer:
		answer := node{"text/event-stream": node{"schema": node{"type": "string"}}}
		if strings.HasPrefix(r.Path, "/api/threads/") && strings.HasSuffix(r.Path, "/events") {
			answer["application/json"] = node{"schema": ref("EventList")}
		}
		return node{"description": "Server-sent events.", "content": answer}
	case socketAnswer:
		return node{"description": "A WebSocket; docs/http.md has its frames."}
	case "":
	default:
		return json(ref(pascal(r.shows.answer)))
	}
	if r.status() == "202" {
		return node{"description": "Begun; followed as server-sent events if the caller accepts them.", "content": node{
			"application/json": node{"schema": ref("RunBegun")}, "text/event-stream": node{"schema": node{"type": "string"}},
		}}
	}
	if r.Command != "" {
		return json(ref("Reply"))
	}
	if r.Query == "message.get" {
		return json(node{"anyOf": []node{ref(pascal(answerOf(r.Query))), {"type": "null"}}})
	}
	return json(ref(pascal(answerOf(r.Query))))
}

// answerOf returns the name of the document that answers a query.
func answerOf(name string) string {
	q, _ := events.LookupQuery(name)
	for _, doc := range events.Documents() {
		if sameType(doc.New(), q.Answer) {
			return doc.Name
		}
	}
	return ""
}

// ticketOperation describes POST /api/tickets, a route of the edge itself.
func ticketOperation() node {
	text := node{"type": "string"}
	return node{
		"operationId": "postTickets", "tags": []string{"tickets"},
		"summary": "Makes a ticket, which stands for the credential in one GET within a minute, where a browser cannot send headers.",
		"responses": node{
			"201": node{"description": "Done.", "content": mediaType("application/json", node{
				"type": "object", "required": []string{"ticket", "expiresAt"}, "properties": node{"ticket": text, "expiresAt": text},
			})},
			"default": refusalAnswer(),
		},
	}
}

// refusalAnswer describes the answer to a request that is refused.
func refusalAnswer() node {
	return node{"description": "A refusal.", "content": mediaType("application/json", ref("Problem"))}
}
