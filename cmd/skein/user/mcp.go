package user

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/threads/threadmcp"
)

// tokenVariable has the token of skein mcp --listen. It has no flag: arguments are visible to
// every user of the machine.
const tokenVariable = "SKEIN_MCP_TOKEN"

func (a *app) mcpCommand() *cobra.Command {
	r := &cli.Remote{Actor: "mcp"}
	var thread, listen, tokenFile string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve threads to coding agents over the Model Context Protocol", Args: cobra.NoArgs,
		Long: "Serve threads to coding agents over the Model Context Protocol, on standard input and output, or over\n" +
			"HTTP with --listen. It ends with exit code 0 when its input ends, and on SIGTERM.\n\n" +
			"Over HTTP every request needs a token: the content of --token-file, or of " + tokenVariable + ".",
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := a.mcpToken(listen, tokenFile)
			if err != nil {
				return err
			}
			c, err := r.Connect()
			if err != nil {
				return err
			}
			defer c.Close()
			if thread != "" { // report a mistyped one now, not with the first read
				if _, err := client.Read(cmd.Context(), c, events.GetThread{ThreadID: thread}); err != nil {
					return err
				}
			}
			return a.serveMCP(cmd.Context(), r, threadmcp.Options{Version: cli.Version(), Caller: threadmcp.NewCaller(c, threadmcp.CallerOptions{Thread: thread})}, listen, token)
		},
	}
	r.Flags(cmd)
	r.Serves()
	f := cmd.Flags()
	f.StringVar(&thread, "thread", "", "the thread for which the client works: what it reads is recorded there as mentions")
	f.StringVar(&listen, "listen", "", "serve HTTP at this loopback address, such as 127.0.0.1:8421; port 0 is a free one")
	f.StringVar(&tokenFile, "token-file", "", "file of the token that each HTTP request must have")
	return cmd
}

// mcpToken returns the token for HTTP.
func (a *app) mcpToken(listen, file string) (string, error) {
	if listen == "" {
		if file != "" {
			return "", cli.WrongUsage("--token-file is for HTTP: add --listen, or leave it out")
		}
		return "", nil
	}
	token, ok := a.Env(tokenVariable)
	if file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		token, ok = string(raw), true
	}
	if !ok {
		return "", cli.WrongUsage("--listen needs a token: write one into a file, such as with openssl rand -hex 32, and name it with --token-file, or set %s", tokenVariable)
	}
	token = strings.TrimSpace(token)
	return token, threadmcp.CheckToken(token)
}

func (a *app) serveMCP(ctx context.Context, r *cli.Remote, o threadmcp.Options, listen, token string) error {
	s, err := threadmcp.New(o)
	if err != nil {
		return err
	}
	if listen == "" {
		return s.ServeStream(ctx, a.In, a.Out)
	}
	l, err := threadmcp.Listen(ctx, listen)
	if err != nil {
		return err
	}
	url := "http://" + l.Addr().String() + threadmcp.Path
	if r.JSON {
		err = a.PrintJSON(map[string]string{"url": url})
	} else {
		_, err = fmt.Fprintln(a.Out, url)
	}
	if err != nil {
		_ = l.Close()
		return err
	}
	return s.ServeHTTP(ctx, l, token)
}
