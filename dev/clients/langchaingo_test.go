package clients_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	langchain "github.com/tmc/langchaingo/llms/openai"
)

// langchaingo generates and streams completions, continues after a call, ends at its stop words, and
// reads errors.
func TestCompletions_LangChainGo(t *testing.T) {
	s := openResponses(t)
	as := func(model string) *langchain.LLM {
		c, err := langchain.New(langchain.WithBaseURL(s.Addresses().HTTP+"/v1"), langchain.WithToken("none"), langchain.WithModel(model))
		s.Must(err)
		return c
	}
	c := as("triage")
	talk := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be kind."), llms.TextParts(llms.ChatMessageTypeHuman, "hello")}
	made, err := c.GenerateContent(t.Context(), talk)
	if err != nil || len(made.Choices) != 1 || made.Choices[0].Content != "Hello, you." || made.Choices[0].StopReason != "stop" || made.Choices[0].GenerationInfo["TotalTokens"] != 7 {
		t.Fatalf("%v: %+v", err, made)
	}
	var text strings.Builder
	streamed, err := c.GenerateContent(t.Context(), talk, llms.WithStreamingFunc(func(_ context.Context, piece []byte) error {
		text.Write(piece)
		return nil
	}))
	if err != nil || text.String() != "Hello, you." || streamed.Choices[0].Content != "Hello, you." {
		t.Errorf("%v: %q in %+v", err, text.String(), streamed)
	}
	if made, err = c.GenerateContent(t.Context(), talk, llms.WithStopWords([]string{"you"})); err != nil || made.Choices[0].Content != "Hello, " {
		t.Errorf("stop words: %v: %+v", err, made)
	}
	weather := llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "weather", Parameters: map[string]any{"type": "object"}}}})
	talk[1] = llms.TextParts(llms.ChatMessageTypeHuman, "weather?")
	for _, how := range [][]llms.CallOption{{weather}, {weather, llms.WithStreamingFunc(func(context.Context, []byte) error { return nil })}} {
		made, err := c.GenerateContent(t.Context(), talk, how...)
		if err != nil || len(made.Choices[0].ToolCalls) != 1 || made.Choices[0].ToolCalls[0].FunctionCall.Arguments != `{"city":"Paris"}` {
			t.Fatalf("%v: %+v", err, made)
		}
		call := made.Choices[0].ToolCalls[0]
		answered := append(talk[:2:2], llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{call}},
			llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: call.ID, Name: "weather", Content: "rain"}}})
		if made, err = c.GenerateContent(t.Context(), answered, how...); err != nil || made.Choices[0].Content != "It rains." {
			t.Errorf("%v: %+v", err, made)
		}
	}
	if _, err := as("nobody").GenerateContent(t.Context(), talk); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v", err)
	}
}
