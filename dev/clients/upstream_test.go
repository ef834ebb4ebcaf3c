package clients_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// An agent answers, and calls a tool, with the models of providers as aimock imitates them: OpenAI's
// two protocols, Gemini's address for one of them, and Anthropic's. Where a provider is too busy, talks
// nonsense, hangs up or breaks off in mid-sentence, the fallback answers alone.
func TestUpstream_AIMock(t *testing.T) {
	dir, node := installFrom(t, "upstream/package.json", "upstream/aimock.mjs")
	url := startAddressed(t, node, dir, "aimock.mjs")
	t.Setenv("AIMOCK_KEY", "sk-test")
	s := skeintest.Start(t, func(o *skein.Options) {
		o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme"
		for name, at := range map[string]string{"responses": "responses," + url + "/v1", "chat": "chat," + url + "/v1", "gemini": "chat," + url + "/v1beta/openai", "messages": "messages," + url} {
			o.ModelEndpoints = append(o.ModelEndpoints, name+"="+at+",AIMOCK_KEY")
			o.ModelEndpointOptions = append(o.ModelEndpointOptions, name+".attempts=1")
		}
	})
	c := openaigo.NewClient(option.WithBaseURL(s.Addresses().HTTP+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	for _, endpoint := range []string{"responses", "chat", "gemini", "messages"} {
		t.Run(endpoint, func(t *testing.T) {
			for _, model := range []string{"steady", "busy", "garbled", "gone", "cut"} {
				fallback := ""
				if model != "steady" {
					fallback = fmt.Sprintf(`,"fallback":[%q]`, endpoint+"-steady")
				}
				_, err := s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
					{Kind: events.ModelKind, Definition: fmt.Appendf(nil, `{"name":"%s-%s","model":%q,"endpoint":%q%s}`, endpoint, model, model, endpoint, fallback)},
				}})
				s.Must(err)
				made, err := c.Chat.Completions.New(t.Context(), openaigo.ChatCompletionNewParams{Model: endpoint + "-" + model, Messages: []openaigo.ChatCompletionMessageParamUnion{openaigo.UserMessage("hello")}})
				if err != nil || made.Choices[0].Message.Content != "Hello, you." || made.Choices[0].FinishReason != "stop" {
					t.Errorf("%s: %v: %+v", model, err, made)
				}
			}
			callsWeather(t, c, endpoint+"-steady")
		})
	}
}

// callsWeather has a model call a tool of the caller in a stream, and continues with its result.
func callsWeather(t *testing.T, c openaigo.Client, model string) {
	t.Helper()
	ask := openaigo.ChatCompletionNewParams{
		Model: model, Messages: []openaigo.ChatCompletionMessageParamUnion{openaigo.UserMessage("weather?")},
		Tools: []openaigo.ChatCompletionToolUnionParam{openaigo.ChatCompletionFunctionTool(openaigo.FunctionDefinitionParam{
			Name: "weather", Parameters: openaigo.FunctionParameters{"type": "object"},
		})},
	}
	all := openaigo.ChatCompletionAccumulator{}
	stream := c.Chat.Completions.NewStreaming(t.Context(), ask)
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if stream.Err() != nil || len(all.Choices) != 1 || len(all.Choices[0].Message.ToolCalls) != 1 || all.Choices[0].Message.Content != "Let me see." {
		t.Fatalf("%v: %+v", stream.Err(), all.ChatCompletion)
	}
	call := all.Choices[0].Message.ToolCalls[0]
	if call.Function.Arguments != `{"city":"Paris"}` {
		t.Errorf("%+v", call)
	}
	ask.Messages = append(ask.Messages, all.Choices[0].Message.ToParam(), openaigo.ToolMessage("rain", call.ID))
	made, err := c.Chat.Completions.New(t.Context(), ask)
	if err != nil || made.Choices[0].Message.Content != "It rains." {
		t.Errorf("%v: %+v", err, made)
	}
}

// startAddressed starts a program of Node which ends with its input, and returns the address that it
// prints first.
func startAddressed(t *testing.T, node, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, script))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s prints no address: %v", script, err)
	}
	return strings.TrimSpace(address)
}
