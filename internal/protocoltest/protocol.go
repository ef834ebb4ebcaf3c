package protocoltest

import (
	"fmt"
	"strings"
)

// Protocol is how a client runs an agent.
type Protocol struct {
	Name string

	// Made tells that the conversation is a thread with the key id, which was made before.
	Made bool

	// Begin begins a run, in the conversation id. It is the same for the same arguments, so that
	// sending it again is a repeat; another text with the same id is not.
	Begin func(id, agent, text string) Request
	// Resume goes on with the stream of a run that Begin began, of which the client has read so much.
	Resume func(id, agent, text string, read *Stream) Request
	// Cancel cancels the run of a stream.
	Cancel func(id, agent string, read *Stream) Request
	// Grant grants the approval for which the run of a stream waits.
	Grant func(id, agent string, read *Stream) Request
	// Answer answers the question of the tool ask for which the run of a stream waits.
	Answer func(id, agent, text string, read *Stream) Request
	// Reload reads the conversation of a run again, as a client does that was started again; nil: the
	// protocol has no such request.
	Reload func(id, agent string, read *Stream) Request
	// Offer begins a run, as Begin does, with a tool of the caller's own, weather; nil: the protocol has
	// none.
	Offer func(id, agent, text string) Request
	// Result goes on in the conversation of a run that Offer began, and that has called the tool, with
	// the result of a call of it.
	Result func(id, agent, text, call, result string, read *Stream) Request
	// Text returns the text of the agent in what was read.
	Text func([]Frame) string

	Follows                     bool   // a stream goes on while the run waits for a person
	Whole                       bool   // an answer has no text before the run has ended
	Replays                     bool   // Resume also has a run that has ended
	Attempts                    bool   // a stream has what each attempt of a model wrote
	Continues                   bool   // a stream that is resumed has what is new only
	Imports                     bool   // a conversation takes calls, and results, that none of its runs has made
	Completed, Cancelled, Waits string // what the end of a stream contains
	Calls                       string // what that of a run contains which calls a tool of the caller
}

// All returns the protocols over HTTP.
func All() []Protocol {
	return []Protocol{responses(), completions(), chat(), agui(), a2a(), a2aREST(), mcp(), rest()}
}

// Every returns all protocols: also those whose streams are lines of a program, and messages of NATS.
// These have no keys with rights, no request that is sent again, and a reader of their own.
func Every() []Protocol { return append(All(), acp(), agents()) }

// deltas returns a function that joins the texts that a function finds in frames.
func deltas(in func(fields) string) func([]Frame) string {
	return func(list []Frame) string {
		var text strings.Builder
		for _, f := range list {
			text.WriteString(in(f.fields()))
		}
		return text.String()
	}
}

// typedDeltas returns a function that joins the deltas in frames of a type.
func typedDeltas(kind string) func([]Frame) string {
	return deltas(func(m fields) string {
		if m.text("type") != kind {
			return ""
		}
		return m.text("delta")
	})
}

// last returns the value of a field of the last frame that has it.
func last(s *Stream, field string) string {
	for i := len(s.Frames) - 1; i >= 0; i-- {
		if v, has := s.Frames[i].fields()[field]; has {
			return fmt.Sprint(v)
		}
	}
	return ""
}

// callOf returns the id of the call that waits.
func callOf(s *Stream) string { return idOf(s.String(), `\b(call-[0-9a-f]+)`) }

func responses() Protocol {
	response := func(s *Stream) string { return strings.Replace(s.Execution(), "exe_", "resp_", 1) }
	return Protocol{
		Name: "Open Responses",
		Begin: func(id, agent, text string) Request {
			return Request{Path: "/v1/responses", Body: fmt.Sprintf(`{"model":%q,"input":%q,"stream":true}`, agent, text), Header: map[string]string{"Idempotency-Key": id}}
		},
		Resume: func(_, _, _ string, s *Stream) Request {
			return Request{Method: "GET", Path: "/v1/responses/" + response(s) + "?stream=true&starting_after=" + last(s, "sequence_number")}
		},
		Continues: true, Replays: true, Attempts: true,
		Cancel: func(_, _ string, s *Stream) Request {
			return Request{Path: "/v1/responses/" + response(s) + "/cancel", Body: "{}"}
		},
		Grant: func(_, agent string, s *Stream) Request {
			request := idOf(s.String(), `"id":"(mcpr_[^"]+)"`)
			return Request{Path: "/v1/responses", Body: fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"stream":true,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, agent, response(s), request)}
		},
		Answer: func(_, agent, text string, s *Stream) Request {
			return Request{Path: "/v1/responses", Body: fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"stream":true,"input":[{"type":"function_call_output","call_id":%q,"output":%q}]}`, agent, response(s), callOf(s), text)}
		},
		Reload: func(_, _ string, s *Stream) Request {
			return Request{Method: "GET", Path: "/v1/responses/" + response(s)}
		},
		Offer: func(id, agent, text string) Request {
			return Request{Path: "/v1/responses", Body: fmt.Sprintf(`{"model":%q,"input":%q,"stream":true,"tools":[%s]}`, agent, text, weather(`"type":"function",`, "parameters")), Header: map[string]string{"Idempotency-Key": id}}
		},
		Result: func(id, agent, _, call, result string, s *Stream) Request {
			return Request{
				Path: "/v1/responses", Header: map[string]string{"Idempotency-Key": id + "-result"},
				Body: fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"stream":true,"input":[{"type":"function_call_output","call_id":%q,"output":%q}]}`, agent, response(s), call, result),
			}
		},
		Text:      typedDeltas("response.output_text.delta"),
		Completed: `"type":"response.completed"`, Cancelled: `"reason":"cancelled"`, Waits: "mcp_approval_request", Calls: `"type":"function_call"`,
	}
}

// weather returns the tool of the caller as a protocol has it, which calls its schema so.
func weather(first, schema string) string {
	return fmt.Sprintf(`{%s"name":"weather","description":"Weather.","%s":{"type":"object"}}`, first, schema)
}

func completions() Protocol {
	ask := func(id, key, agent, messages, more string) Request {
		return Request{
			Path: "/v1/chat/completions", Body: fmt.Sprintf(`{"model":%q,"messages":[%s],"stream":true%s}`, agent, messages, more),
			Header: map[string]string{"Skein-Thread": id, "Idempotency-Key": key},
		}
	}
	user := func(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
	begin := func(id, agent, text string) Request { return ask(id, id, agent, user(text), "") }
	tools := `,"tools":[{"type":"function","function":` + weather("", "parameters") + `}]`
	return Protocol{
		Name: "Chat Completions", Begin: begin, Replays: true, Imports: true,
		Resume: func(id, agent, text string, _ *Stream) Request { return begin(id, agent, text) },
		Cancel: func(_, _ string, s *Stream) Request {
			return Request{Path: "/api/threads/" + s.Thread() + "/cancel", Body: "{}"}
		},
		Grant:  grant,
		Answer: answer,
		Offer:  func(id, agent, text string) Request { return ask(id, id, agent, user(text), tools) },
		Result: func(id, agent, text, call, result string, s *Stream) Request {
			said := deltas(func(m fields) string { return m.first("choices").of("delta").text("content") })(s.Frames)
			return ask(id, id+"-result", agent, user(text)+fmt.Sprintf(
				`,{"role":"assistant","content":%q,"tool_calls":[{"id":%q,"type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":%[2]q,"content":%[3]q}`, said, call, result), tools)
		},
		Text:      deltas(func(m fields) string { return m.first("choices").of("delta").text("content") }),
		Completed: `"finish_reason":"stop"`, Cancelled: `"error":`, Waits: `"waiting":[`, Calls: `"finish_reason":"tool_calls"`,
	}
}

// cancel cancels the run of the thread with the key id as all of Skein does.
func cancel(id, _ string, _ *Stream) Request {
	return Request{Path: "/api/threads/key:" + id + "/cancel", Body: "{}"}
}

// grant grants an approval as all of Skein does.
func grant(_, _ string, s *Stream) Request {
	return Request{Path: "/api/threads/" + s.Thread() + "/approvals/" + callOf(s), Body: `{"grant":true}`}
}

// answer answers a question as all of Skein does.
func answer(_, _, text string, s *Stream) Request {
	return Request{Path: "/api/threads/" + s.Thread() + "/approvals/" + callOf(s), Body: fmt.Sprintf(`{"result":%q}`, text)}
}

func chat() Protocol {
	part := func(id, agent, part string, s *Stream) Request {
		message := idOf(s.String(), `"messageId":"([^"]+)"`)
		return Request{Path: "/chat", Body: fmt.Sprintf(`{"id":%q,"agent":%q,"message":{"id":%q,"role":"assistant","parts":[{"toolCallId":%q,%s}]}}`, id, agent, message, callOf(s), part)}
	}
	return Protocol{
		Name: "AI SDK",
		Begin: func(id, agent, text string) Request {
			return Request{Path: "/chat", Body: fmt.Sprintf(`{"id":%q,"agent":%q,"message":{"id":"u-%s","role":"user","parts":[{"type":"text","text":%q}]}}`, id, agent, id, text)}
		},
		Resume: func(id, _, _ string, _ *Stream) Request {
			return Request{Method: "GET", Path: "/chat/" + id + "/stream"}
		},
		Cancel: func(id, _ string, _ *Stream) Request { return Request{Path: "/chat/" + id + "/stop", Body: "{}"} },
		Grant: func(id, agent string, s *Stream) Request {
			return part(id, agent, fmt.Sprintf(`"type":"tool-refund","state":"approval-responded","input":{"eur":5},"approval":{"id":%q,"approved":true}`, callOf(s)), s)
		},
		Answer: func(id, agent, text string, s *Stream) Request {
			return part(id, agent, fmt.Sprintf(`"type":"tool-ask","state":"output-available","input":{"question":"Why?"},"output":%q`, text), s)
		},
		Reload:    func(id, _ string, _ *Stream) Request { return Request{Method: "GET", Path: "/chat/" + id} },
		Text:      typedDeltas("text-delta"),
		Completed: `"finishReason":"stop"`, Cancelled: `"type":"abort"`, Waits: "tool-approval-request",
	}
}

func agui() Protocol {
	with := func(tools, id, run, rest string) string {
		return fmt.Sprintf(`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","tools":[%s],"context":[],"state":{},"forwardedProps":{},%s}`, id, run, tools, rest)
	}
	input := func(id, run, rest string) string { return with("", id, run, rest) }
	tools := weather("", "parameters")
	resume := func(id, agent, payload string, s *Stream) Request {
		return Request{Path: "/agui/" + agent, Body: input(id, "resume-"+id, fmt.Sprintf(`"messages":[],"resume":[{"interruptId":%q,"status":"resolved","payload":%s}]`, callOf(s), payload))}
	}
	return Protocol{
		Name: "AG-UI",
		Begin: func(id, agent, text string) Request {
			return Request{Path: "/agui/" + agent, Body: input(id, "run-"+id, fmt.Sprintf(`"messages":[{"id":"u-%s","role":"user","content":%q}]`, id, text))}
		},
		Resume: func(id, agent, _ string, _ *Stream) Request {
			return Request{Path: "/agui/agent/" + agent + "/connect", Body: input(id, "connect", `"messages":[]`)}
		},
		Cancel: func(id, agent string, _ *Stream) Request {
			return Request{Path: "/agui/agent/" + agent + "/stop/" + id, Body: fmt.Sprintf(`{"runId":"run-%s"}`, id)}
		},
		Grant: func(id, agent string, s *Stream) Request {
			return resume(id, agent, `{"approved":true}`, s)
		},
		Answer: func(id, agent, text string, s *Stream) Request {
			return resume(id, agent, fmt.Sprintf("%q", text), s)
		},
		Reload: func(id, agent string, _ *Stream) Request {
			return Request{Path: "/agui/agent/" + agent + "/connect", Body: input(id, "reload", `"messages":[]`)}
		},
		Offer: func(id, agent, text string) Request {
			return Request{Path: "/agui/" + agent, Body: with(tools, id, "run-"+id, fmt.Sprintf(`"messages":[{"id":"u-%s","role":"user","content":%q}]`, id, text))}
		},
		Result: func(id, agent, text, call, result string, s *Stream) Request {
			return Request{Path: "/agui/" + agent, Body: with(tools, id, "result-"+id, fmt.Sprintf(
				`"messages":[{"id":"u-%s","role":"user","content":%q},{"id":%q,"role":"assistant","content":%q,"toolCalls":[{"id":%q,"type":"function","function":{"name":"weather","arguments":"{}"}}]},{"id":"t-%[1]s","role":"tool","toolCallId":%[5]q,"content":%[6]q}]`,
				id, text, idOf(s.String(), `"messageId":"([^"]+)"`), typedDeltas("TEXT_MESSAGE_CONTENT")(s.Frames), call, result))}
		},
		Text:      typedDeltas("TEXT_MESSAGE_CONTENT"),
		Completed: `"type":"RUN_FINISHED"`, Cancelled: `"outcome":{"type":"cancelled"}`, Waits: `"type":"interrupt"`, Calls: `"pendingToolCallIds":["call-`,
	}
}

// a2aMessage returns the parameters that send a message, whose parts are JSON.
func a2aMessage(id, message, task, parts string) string {
	if task != "" {
		task = fmt.Sprintf(`"taskId":%q,`, task)
	}
	return fmt.Sprintf(`{"message":{"messageId":%q,"contextId":%q,%s"role":"ROLE_USER","parts":[%s]}}`, message, id, task, parts)
}

// a2aText returns the text of the last artifacts of a task in frames, which in decodes.
func a2aText(in func(fields) fields) func([]Frame) string {
	return func(list []Frame) string {
		text := ""
		for _, f := range list {
			m := in(f.fields())
			if task := m.of("task"); task != nil {
				text = task.first("artifacts").first("parts").text("text")
			}
			if u := m.of("artifactUpdate"); u != nil {
				if u["append"] != true {
					text = ""
				}
				text += u.of("artifact").first("parts").text("text")
			}
		}
		return text
	}
}

func a2a() Protocol {
	call := func(agent, method, params string) Request {
		return Request{Path: "/a2a/" + agent, Body: fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params), Header: map[string]string{"A2A-Version": "1.0"}}
	}
	byID := func(s *Stream) string { return fmt.Sprintf(`{"id":%q}`, s.Execution()) }
	return Protocol{
		Name: "A2A, JSON-RPC",
		Begin: func(id, agent, text string) Request {
			return call(agent, "SendStreamingMessage", a2aMessage(id, id, "", fmt.Sprintf(`{"text":%q}`, text)))
		},
		Resume: func(_, agent, _ string, s *Stream) Request { return call(agent, "SubscribeToTask", byID(s)) },
		Cancel: func(_, agent string, s *Stream) Request { return call(agent, "CancelTask", byID(s)) },
		Grant: func(id, agent string, s *Stream) Request {
			return call(agent, "SendStreamingMessage", a2aMessage(id, id+"-grant", s.Execution(), `{"data":{"grant":true}}`))
		},
		Answer: func(id, agent, text string, s *Stream) Request {
			return call(agent, "SendStreamingMessage", a2aMessage(id, id+"-answer", s.Execution(), fmt.Sprintf(`{"text":%q}`, text)))
		},
		Reload:    func(_, agent string, s *Stream) Request { return call(agent, "GetTask", byID(s)) },
		Text:      a2aText(func(m fields) fields { return m.of("result") }),
		Completed: "TASK_STATE_COMPLETED", Cancelled: "TASK_STATE_CANCELED", Waits: "TASK_STATE_INPUT_REQUIRED",
	}
}

func a2aREST() Protocol {
	call := func(path, body string) Request {
		return Request{Path: path, Body: body, Header: map[string]string{"A2A-Version": "1.0"}}
	}
	return Protocol{
		Name: "A2A, HTTP+JSON",
		Begin: func(id, agent, text string) Request {
			return call("/a2a/"+agent+"/message:stream", a2aMessage(id, id, "", fmt.Sprintf(`{"text":%q}`, text)))
		},
		Resume: func(_, agent, _ string, s *Stream) Request {
			return call("/a2a/"+agent+"/tasks/"+s.Execution()+":subscribe", "")
		},
		Cancel: func(_, agent string, s *Stream) Request {
			return call("/a2a/"+agent+"/tasks/"+s.Execution()+":cancel", "")
		},
		Grant: func(id, agent string, s *Stream) Request {
			return call("/a2a/"+agent+"/message:stream", a2aMessage(id, id+"-grant", s.Execution(), `{"data":{"grant":true}}`))
		},
		Answer: func(id, agent, text string, s *Stream) Request {
			return call("/a2a/"+agent+"/message:stream", a2aMessage(id, id+"-answer", s.Execution(), fmt.Sprintf(`{"text":%q}`, text)))
		},
		Reload: func(_, agent string, s *Stream) Request {
			r := call("/a2a/"+agent+"/tasks/"+s.Execution(), "")
			r.Method = "GET"
			return r
		},
		Text:      a2aText(func(m fields) fields { return m }),
		Completed: "TASK_STATE_COMPLETED", Cancelled: "TASK_STATE_CANCELED", Waits: "TASK_STATE_INPUT_REQUIRED",
	}
}

// mcp is the tool ask_agent, whose result is there when the run has ended, or waits. Progress is told
// before it, so that the answer begins at once.
func mcp() Protocol {
	call := func(key, tool, args string) Request {
		header := map[string]string{"Mcp-Protocol-Version": "2025-06-18"}
		if key != "" {
			header["Idempotency-Key"] = key
		}
		return Request{Path: "/mcp", Header: header, Body: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":%q,"arguments":{%s}}}`, tool, args)}
	}
	begin := func(id, agent, text string) Request {
		r := call(id, "ask_agent", fmt.Sprintf(`"agent":%q,"text":%q,"thread":"key:%s"`, agent, text, id))
		r.thread = "key:" + id
		return r
	}
	return Protocol{
		Name: "MCP", Begin: begin, Made: true, Whole: true, Replays: true,
		Resume: func(id, agent, text string, _ *Stream) Request { return begin(id, agent, text) },
		Cancel: cancel,
		Grant: func(id, _ string, s *Stream) Request {
			return call("", "approve", fmt.Sprintf(`"thread":"key:%s","call":%q,"decision":"grant"`, id, callOf(s)))
		},
		Answer: func(id, _, text string, s *Stream) Request {
			return call("", "approve", fmt.Sprintf(`"thread":"key:%s","call":%q,"decision":"result","value":%q`, id, callOf(s), text))
		},
		Text:      deltas(func(m fields) string { return m.of("result").first("content").text("text") }),
		Completed: `"status":"completed"`, Cancelled: "The run was cancelled.", Waits: `"kind":"approval"`,
	}
}

// rest is a run of /api that is followed. Its thread is made before, with the key id.
func rest() Protocol {
	react := func(id, key, agent, item, more string) Request {
		return Request{
			Path: "/api/threads/key:" + id + "/react", Body: fmt.Sprintf(`{"agentId":%q,"item":{%s}%s}`, agent, item, more),
			Header: map[string]string{"Idempotency-Key": key, "Accept": "text/event-stream"},
		}
	}
	says := func(text string) string {
		return fmt.Sprintf(`"type":"message","role":"user","content":[{"type":"input_text","text":%q}]`, text)
	}
	tools := `,"settings":{"tools":[` + weather("", "parameters") + `]}`
	return Protocol{
		Name: "REST", Made: true, Follows: true, Imports: true,
		Begin: func(id, agent, text string) Request { return react(id, id, agent, says(text), "") },
		Offer: func(id, agent, text string) Request { return react(id, id, agent, says(text), tools) },
		Result: func(id, agent, _, call, result string, _ *Stream) Request {
			return react(id, id+"-result", agent, fmt.Sprintf(`"type":"action_result","content":{"callId":%q,"output":%q}`, call, result), tools)
		},
		Resume: func(id, _, _ string, s *Stream) Request {
			position := ""
			for _, f := range s.Frames {
				if f.ID != "" {
					position = f.ID
				}
			}
			return Request{Method: "GET", Path: "/api/threads/key:" + id + "/chunks?execution=" + s.Execution(), Header: map[string]string{"Last-Event-ID": position, "Accept": "text/event-stream"}}
		},
		Continues: true, Replays: true, Attempts: true,
		Cancel: cancel,
		Grant:  grant,
		Answer: answer,
		Reload: func(id, _ string, _ *Stream) Request {
			return Request{Method: "GET", Path: "/api/threads/key:" + id + "/messages"}
		},
		Text: deltas(func(m fields) string {
			if m.text("type") != "text-delta" {
				return ""
			}
			return m.of("data").text("delta")
		}),
		Completed: `"type":"finish"`, Cancelled: `"type":"finish"`, Waits: "approval", Calls: `"type":"finish"`,
	}
}
