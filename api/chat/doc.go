// Package chat serves the AI SDK's protocol at /chat: it accepts the messages that useChat
// sends, and streams an agent's answer as UI message chunks.
//
// A chat is a thread whose key is the chat's id. A UI message of the assistant is the answer of
// one execution, and its id is that of the execution's reaction item.
//
// # What it promises
//
//   - One function turns a run into chunks: a [Renderer]. A stream shows the same message while
//     the run is active, when it is resumed, and when it has ended, whichever of chunks and
//     events arrives first.
//   - A resumed stream begins with the message's start, with the ids of the first stream.
//   - A chunk is one that the released client knows, and none of its fields is null.
//   - A run does not depend on its stream: only a stop ends it.
//   - What a client sends of the history of an existing chat is ignored; the thread has it.
//     Answers to calls are accepted for calls that wait for them, and for no others.
//
// # What it does not
//
// It holds no chat in memory between requests: any process continues any chat.
package chat
