package clients_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	sashabaranov "github.com/sashabaranov/go-openai"
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
	short := openaigo.ChatCompletionNewParams{Model: "triage", Messages: []openaigo.ChatCompletionMessageParamUnion{openaigo.UserMessage("hello")}, Stop: openaigo.ChatCompletionNewParamsStopUnion{OfString: openaigo.String("you")}}
	if made, err := c.Chat.Completions.New(t.Context(), short); err != nil || made.Choices[0].Message.Content != "Hello, " {
		t.Errorf("stop: %v: %+v", err, made)
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

// go-openai, of sashabaranov, creates and streams completions, continues after a call, lists models and
// reads errors.
func TestCompletions_GoOpenAI(t *testing.T) {
	s := openResponses(t)
	config := sashabaranov.DefaultConfig("none")
	config.BaseURL = s.Addresses().HTTP + "/v1"
	c := sashabaranov.NewClientWithConfig(config)
	ask := sashabaranov.ChatCompletionRequest{Model: "triage", Messages: []sashabaranov.ChatCompletionMessage{{Role: "user", Content: "hello"}}}
	made, err := c.CreateChatCompletion(t.Context(), ask)
	if err != nil || len(made.Choices) != 1 || made.Choices[0].Message.Content != "Hello, you." || made.Usage.TotalTokens != 7 {
		t.Fatalf("%v: %+v", err, made)
	}
	short := ask
	short.Stop = []string{"you"}
	if made, err := c.CreateChatCompletion(t.Context(), short); err != nil || made.Choices[0].Message.Content != "Hello, " {
		t.Errorf("stop: %v: %+v", err, made)
	}
	ask.StreamOptions = &sashabaranov.StreamOptions{IncludeUsage: true}
	stream, err := c.CreateChatCompletionStream(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text strings.Builder
	tokens := 0
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
		}
		if chunk.Usage != nil {
			tokens = chunk.Usage.TotalTokens
		}
	}
	if text.String() != "Hello, you." || tokens != 7 {
		t.Errorf("%q, %d tokens", text.String(), tokens)
	}
	ask.StreamOptions = nil
	ask.Messages[0].Content = "weather?"
	ask.Tools = []sashabaranov.Tool{{Type: sashabaranov.ToolTypeFunction, Function: &sashabaranov.FunctionDefinition{Name: "weather", Parameters: map[string]any{"type": "object"}}}}
	made, err = c.CreateChatCompletion(t.Context(), ask)
	if err != nil || len(made.Choices[0].Message.ToolCalls) != 1 || made.Choices[0].FinishReason != sashabaranov.FinishReasonToolCalls {
		t.Fatalf("%v: %+v", err, made)
	}
	call := made.Choices[0].Message.ToolCalls[0]
	ask.Messages = append(ask.Messages, made.Choices[0].Message, sashabaranov.ChatCompletionMessage{Role: "tool", ToolCallID: call.ID, Content: "rain"})
	if made, err = c.CreateChatCompletion(t.Context(), ask); err != nil || made.Choices[0].Message.Content != "It rains." {
		t.Errorf("%v: %+v", err, made)
	}
	models, err := c.ListModels(t.Context())
	if err != nil || len(models.Models) != 2 {
		t.Errorf("%v: %+v", err, models)
	}
	ask.Model = "nobody"
	_, err = c.CreateChatCompletion(t.Context(), ask)
	refused := (*sashabaranov.APIError)(nil)
	if !errors.As(err, &refused) || refused.HTTPStatusCode != 404 || refused.Code != "model_not_found" {
		t.Errorf("%v", err)
	}
}
