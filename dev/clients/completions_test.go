package clients_test

import (
	"testing"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Clients of OpenAI, of LangChain and of the AI SDK ask for chat completions, as they do of OpenAI's
// own server.
func TestCompletions_Node(t *testing.T) {
	dir, node := installFrom(t, "completions/package.json", "completions/completions.mjs")
	s := openResponses(t)
	runScript(t, node, dir, "completions.mjs", "SKEIN_URL="+s.Addresses().HTTP)
}

// openai-go creates and streams completions, and continues after a call.
func TestCompletions_Go(t *testing.T) {
	s := openResponses(t)
	c := openaigo.NewClient(option.WithBaseURL(s.Addresses().HTTP+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	ask := openaigo.ChatCompletionNewParams{
		Model: "triage", Messages: []openaigo.ChatCompletionMessageParamUnion{openaigo.UserMessage("weather?")},
		Tools: []openaigo.ChatCompletionToolUnionParam{openaigo.ChatCompletionFunctionTool(openaigo.FunctionDefinitionParam{
			Name: "weather", Parameters: openaigo.FunctionParameters{"type": "object"},
		})},
		StreamOptions: openaigo.ChatCompletionStreamOptionsParam{IncludeUsage: openaigo.Bool(true)},
	}
	stream := c.Chat.Completions.NewStreaming(t.Context(), ask)
	all := openaigo.ChatCompletionAccumulator{}
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Errorf("a chunk that does not belong to the others: %+v", stream.Current())
		}
	}
	if stream.Err() != nil || len(all.Choices) != 1 || len(all.Choices[0].Message.ToolCalls) != 1 || all.Choices[0].FinishReason != "tool_calls" || all.Usage.TotalTokens != 7 {
		t.Fatalf("%v: %+v", stream.Err(), all.ChatCompletion)
	}
	call := all.Choices[0].Message.ToolCalls[0]
	if call.Function.Arguments != `{"city":"Paris"}` {
		t.Errorf("%+v", call)
	}
	ask.StreamOptions = openaigo.ChatCompletionStreamOptionsParam{}
	ask.Messages = append(ask.Messages, all.Choices[0].Message.ToParam(), openaigo.ToolMessage("rain", call.ID))
	made, err := c.Chat.Completions.New(t.Context(), ask)
	if err != nil || made.Choices[0].Message.Content != "It rains." {
		t.Errorf("%v: %+v", err, made)
	}
}
