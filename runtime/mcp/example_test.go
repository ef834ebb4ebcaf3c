package mcp_test

import (
	"context"
	"fmt"
	"os"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/mcp"
)

// A server's tools, added to those of this process. The program is this test's own
// binary, which serves MCP if a flag is set.
func ExampleManager_Tools() {
	binary, _ := os.Executable()
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)

	servers, err := mcp.New(mcp.Options{}, mcp.Server{Name: "files", Command: binary, Args: []string{"-mcp-server", "serve", dir}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer servers.Close()
	files, err := servers.Tools(context.Background(), "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	registry := runtime.NewRegistry(nil)
	for _, tool := range files.Tools {
		if err := registry.AddTool(tool); err != nil {
			fmt.Println(err)
		}
	}
	echo, err := registry.Tool("files__echo")
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := echo.Call(context.Background(), &runtime.ToolInput{Key: "k", Arguments: events.JSON(`{"a":1}`)})
	fmt.Println(result.Status, string(result.Result), err)
	fmt.Println(files.Left[0].Name, "is left out:", files.Left[0].Reason)
	// Output:
	// success "{\"a\":1}" <nil>
	// remote is left out: invalid_request: the schema of the parameters refers to https://example.com/a, which leads out of the schema; put what it names into $defs
}
