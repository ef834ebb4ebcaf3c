// Package openresponses serves Open Responses under /v1, and what OpenAI's clients call as
// well: conversations and models.
//
// # What it promises
//
//   - A response is an execution, and its id is resp_ with the execution's id without its
//     prefix. Nothing about a response is held here: any edge continues what another began.
//   - A request that is refused has written nothing. One that is accepted runs whether or not
//     the client stays; only cancel ends it.
//   - The events of a response are a function of its execution: of its chunks while they are
//     stored, and of its parts after that. So every replay has the sequence numbers of the
//     first stream, and after the chunks have gone, those of the first replay without them.
//   - A parameter either has the effect that the protocol says, or is only repeated in the
//     response and listed so in docs/openresponses.md, or is refused.
//   - A tool that the server runs is never shown as a function_call, which clients would
//     execute. Requests that include skein.server_tools see it as an mcp_call.
//
// # How a request becomes a run
//
// The input becomes items of a thread: of a new one, of that of previous_response_id if that
// response is its last, else of a fork at that response, or of a conversation. The last item
// is what thread.react answers, in the same commit as the others. Instructions, function tools
// and the parameters of the model are the settings of that run, so that every reactor
// receives them; what is only repeated is in the metadata of the settings.
//
// Ids of output items are made of that of the reaction item: msg_, rs_, fc_ and mcp_ with its
// id without prefix, and a number or a digest of the call. Any of them can be referred to by
// an item_reference.
//
// # How a run becomes a response
//
// A stream renders the frames of a [runview.View] that cannot take anything back. It passes a step's
// chunks, and then its parts, of which the view shows what was not streamed: so the same chunks and
// parts make the same events, whenever they are read. The output of a response, and a stream whose
// chunks have gone, are made of the parts alone. Both end with the same items, but for a step whose
// reactor was asked again, or streamed something else than it returned: the stream has the one before
// the other.
//
// What only this protocol needs of a view are the calls as the model writes them, since clients
// make them, the reasonings without a text, which clients send back, and the parts as they are
// stored, with their annotations and phases. Chats need to know of resets and of data as it is
// streamed, which responses do not have.
//
// # What it does not
//
// It has no mapping of items of its own: package events/openresponses converts them. It folds no
// events: a [runstream.Record] does, and where a run waits for people is said by [runview.Pauses].
//
// # What may enter
//
// What Open Responses, and OpenAI's clients of it, say over HTTP.
package openresponses
