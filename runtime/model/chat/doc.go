// Package chat calls endpoints that speak the Chat Completions protocol, as OpenRouter, Ollama,
// vLLM, LM Studio, llama.cpp, Gemini, DeepSeek and many others do. It is a codec of package model.
//
// The calls of one step are one assistant message, followed at once by a tool message for each.
// Images in results, which tool messages cannot have, follow in a user message. The text of
// reasoning goes back as reasoning_content if the endpoint takes it (Config.RawReasoning), and is
// left out otherwise. What of the thread the protocol has no form for is shown as a note.
//
// An answer ends with a finish_reason; its usage may follow.
package chat
