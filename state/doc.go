// Package state remembers visitors of an HTTP server, in the manner of Agentuity: a thread is a
// conversation that its visitor comes back to, a session is one request of it. It is a library
// over package client, and every operation of it is also a command or a query over NATS.
//
//	app, err := state.New(ctx, state.Options{Client: c, Keys: [][]byte{key}})
//	http.ListenAndServe(addr, state.Middleware(app)(mux))
//	defer app.Shutdown(ctx)
//
//	func chat(w http.ResponseWriter, r *http.Request) {
//		ctx := r.Context()
//		t := state.Thread(ctx)
//		if err := t.Push(ctx, "messages", r.FormValue("text"), 50); err != nil { ... }
//		messages, _, err := state.Get[[]string](ctx, t, "messages")
//		...
//	}
//
// # Agents
//
// An [Agent] is a handler from a Go input to a Go output, which are checked against the JSON
// Schemas of their types: what does not fit is refused before the handler. A [StreamAgent] sends
// a text while it is produced. Both are http.Handlers behind [Middleware], and Run calls them from
// any handler. This is all that there is of them:
//
//	agent, err := state.NewAgent("Chat", func(ctx context.Context, in Ask) (Reply, error) { ... },
//		state.WithListener(state.AgentErrored, func(ctx context.Context, r state.AgentRun[Ask, Reply]) error { ... }),
//		state.WithEval("polite", func(ctx context.Context, r state.AgentRun[Ask, Reply]) (state.EvalResult, error) { ... }))
//	mux.Handle("/chat", agent)
//	reply, err := agent.Run(ctx, Ask{"hello"})
//
// Listeners of a run are around its handler, in the same request. Those of the application,
// [Listener], run after events of the log, in any process that calls [App.Listen]. Evals run
// when the response has left, and their results are on the log of the thread.
//
// # What it promises
//
//   - A request that uses no state sends nothing to the server. Writes alone cost one state.merge,
//     and the first read costs one state.get, whatever the number of keys.
//   - A read shows the state as it was at the first read of the request, with the writes of the
//     request. Writes of concurrent requests of one thread are merged by key, and none of their
//     pushes is lost.
//   - Writes are saved before the first byte of the response leaves, so that a failure becomes an
//     error response instead of the handler's. What is written after that byte is saved when the
//     handler returns, and what is written by [WaitUntil] when that work ends. A failure is then
//     logged, and recorded on the thread if it was refused. [ThreadScope.Save] saves at once and
//     returns the error.
//   - The writes that one save stores are stored in one commit, or none of them. A save whose
//     answer was lost is repeated with the same command id, so that no push is made twice.
//   - Nothing is truncated or dropped: a value that is not JSON, and a state over 1 MiB, is an
//     error. The source truncates the one and drops the other.
//   - The id of a thread comes from a header or cookie that the application signed, from its
//     [ThreadIDProvider], or is new. A header with a wrong signature is refused with 401, and
//     a cookie with one is replaced.
//   - A failure or panic of [WaitUntil], of a listener or of an eval is logged and recorded, and
//     never changes the response. [App.Shutdown] waits for them.
//   - A [Listener] to the end of a state runs at least once before its values are cleared, also
//     if its process is killed, or none was there.
//
// # What it does not
//
// Writes of a handler that panics are dropped, unless they were saved before. A process that is
// killed loses what its handlers have not saved, its background work, and its evals.
//
// The end of a thread's state moves with its reads and writes, and with [ThreadScope.Touch]. A
// request that uses no state does not move it.
//
// It does not authenticate anybody: who has the signed id of a thread has its state. Responses
// that carry it are marked private, unless the handler says otherwise, so that no shared cache
// hands it to another visitor.
package state
