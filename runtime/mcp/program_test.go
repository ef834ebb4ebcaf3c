package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverFlag makes the test binary a program that speaks MCP: BINARY -mcp-server MODE
// FOLDER.
const serverFlag = "-mcp-server"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == serverFlag {
		runProgram(os.Args[2], os.Args[3])
		return
	}
	os.Exit(m.Run())
}

// program returns the definition of a server that is this binary in a mode, and its
// folder, where it notes what it has done.
func program(t *testing.T, mode string) (Server, string) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return Server{Name: "files", Command: binary, Args: []string{serverFlag, mode, dir}, TimeoutMs: 60_000}, dir
}

func runProgram(mode, dir string) {
	note(dir, "starts", fmt.Sprint(os.Getpid()))
	switch mode {
	case "dies":
		os.Exit(7)
	case "noise":
		fmt.Println("Server listening, token=topsecret123")
		<-forever()
	case "broken":
		fmt.Println(`{"jsonrpc":"2.0",]}`)
		<-forever()
	case "silent":
		<-forever()
	}
	_ = newServer(dir, forever()).Run(context.Background(), &mcp.StdioTransport{})
	note(dir, "ends", "1")
}

// forever is a channel without values.
func forever() chan struct{} { return make(chan struct{}) }

func note(dir, file, line string) {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// noted returns the lines of a note.
func noted(t *testing.T, dir, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

type anything = map[string]any

// newServer returns a server with various tools. Those that hang do so until over is
// closed.
func newServer(dir string, over <-chan struct{}) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	object := json.RawMessage(`{"type":"object"}`)
	yes, no := true, false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	add := func(name string, hints *mcp.ToolAnnotations, do func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: "The tool " + name, InputSchema: object, Annotations: hints}, do)
	}
	give := func(content ...mcp.Content) func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content}, nil
		}
	}
	text := func(s string) mcp.Content { return &mcp.TextContent{Text: s} }

	add("echo", reads, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		note(dir, "echoes", "1")
		return &mcp.CallToolResult{Content: []mcp.Content{text(string(r.Params.Arguments))}}, nil
	})
	add("environment", reads, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{text(strings.Join(os.Environ(), "\n"))}}, nil
	})
	add("key", nil, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{text(fmt.Sprint(r.Params.Meta[KeyName]))}}, nil
	})
	add("html", nil, give(text("<b>&\u2028é")))
	add("nothing", nil, give())
	add("image", nil, give(text("a dot"), &mcp.ImageContent{Data: []byte("dot"), MIMEType: "image/png"}))
	add("picture", nil, give(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///dot.png", MIMEType: "image/png", Blob: []byte("dot")}}))
	add("document", nil, give(text("the order"), &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///orders/7.pdf", MIMEType: "application/pdf", Blob: []byte("dot")}}))
	add("resource", nil, give(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "a note"}}))
	add("link", nil, give(&mcp.ResourceLink{URI: "file:///a.txt", Name: "a"}))
	const long = `{"n":9007199254740993}` // not a float
	add("structured", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(long), Content: []mcp.Content{text(long)}}, nil
	})
	add("structured_alone", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: []string{"a"}, Content: []mcp.Content{}}, nil
	})
	add("structured_image", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: anything{"a": 1}, Content: []mcp.Content{&mcp.ImageContent{Data: []byte("dot"), MIMEType: "image/png"}}}, nil
	})
	add("fail", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{text("no access with " + os.Getenv("FILES_TOKEN"))}}, nil
	})
	add("refuse", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("not\nallowed with %s", os.Getenv("FILES_TOKEN"))
	})
	crash := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		note(dir, "runs", "1")
		os.Exit(3)
		return nil, nil
	}
	add("crash", nil, crash)
	add("crash_idempotent", &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no}, crash)
	add("destroy", &mcp.ToolAnnotations{DestructiveHint: &yes}, give())
	add("append", &mcp.ToolAnnotations{DestructiveHint: &no}, give())
	add("hang", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "hanging")
		<-over
		return &mcp.CallToolResult{}, nil
	})
	add("hang_reading", reads, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-over
		return &mcp.CallToolResult{}, nil
	})
	add("freeze", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	})
	add("huge", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Print(`{"jsonrpc":"2.0","result":"`)
		for range 50 {
			fmt.Print(strings.Repeat("x", 1<<20))
		}
		<-over
		return &mcp.CallToolResult{}, nil
	})
	add("garbage", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Println("debug: password=topsecret123")
		<-forever()
		return nil, nil
	})
	add("nonsense", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Println(`{"jsonrpc":"2.0","result":17}`)
		<-forever()
		return nil, nil
	})
	add("a.b", nil, give(text("dot")))
	add("a_b", nil, give(text("underscore")))
	add(strings.Repeat("x", 100), nil, give(text("long")))
	s.AddTool(&mcp.Tool{Name: "remote", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	return s
}
