package threadmcp

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/threads/threadtools"
)

// The media types of a thread.
const (
	markdown = "text/markdown"
	document = "application/json"
)

// prefix begins the URI of each thread.
const prefix = "skein://threads/"

// uriOf returns the URI of a thread as Markdown.
func uriOf(id string) string { return prefix + id }

func (s *Server) addResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "thread", Title: "A thread as Markdown", URITemplate: prefix + "{id}{?from,skip}", MIMEType: markdown,
		Description: "The messages of a thread, from an index on. At most 32 KiB; the end says where it continues.",
	}, s.readMarkdown)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "thread-document", Title: "A thread as JSON", URITemplate: prefix + "{id}/document{?from}", MIMEType: document,
		Description: "A thread as one JSON document, with its messages from an index on. If it has nextMessageIndex, it continues there.",
	}, s.readDocument)
}

// listed answers resources/list from the list of threads, which changes all the time.
func (s *Server) listed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "resources/list" {
			return next(ctx, method, req)
		}
		cursor := ""
		if r, ok := req.(*mcp.ListResourcesRequest); ok && r.Params != nil {
			cursor = r.Params.Cursor
		}
		found, err := s.callerOf(ctx).threads.Find(ctx, threadtools.FindArgs{Limit: 50, Cursor: cursor})
		if err != nil {
			return nil, protocolError(err)
		}
		res := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, NextCursor: found.Next, Cacheable: mcp.Cacheable{CacheScope: private}}
		for _, t := range found.Threads {
			res.Resources = append(res.Resources, &mcp.Resource{
				URI: uriOf(t.ThreadID), Name: t.ThreadID, Title: cmp.Or(oneLine(t.Title), t.Key, t.ThreadID), MIMEType: markdown,
				Annotations: &mcp.Annotations{LastModified: t.UpdatedAt},
			})
		}
		return res, nil
	}
}

// protocolError returns a refusal as an error of the protocol.
func protocolError(err error) error {
	err = told(err)
	if events.HasCode(err, events.InvalidRequest) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// place is what a URI names.
type place struct {
	id         string
	from, skip int64
}

func placeOf(uri string) (p place, err error) {
	u, err := url.Parse(uri)
	if err != nil {
		return p, mcp.ResourceNotFoundError(uri)
	}
	path, _ := strings.CutSuffix(strings.TrimPrefix(u.EscapedPath(), "/"), "/document")
	if p.id, err = url.PathUnescape(path); err != nil {
		return p, mcp.ResourceNotFoundError(uri)
	}
	for name, at := range map[string]*int64{"from": &p.from, "skip": &p.skip} {
		if text := u.Query().Get(name); text != "" {
			if *at, err = strconv.ParseInt(text, 10, 64); err != nil {
				return p, protocolError(events.Invalid("/uri", "%s is %.40q; it is a number from 0", name, text))
			}
		}
	}
	return p, nil
}

// resourceError returns a refusal to read a URI.
func resourceError(uri string, err error) error {
	if events.IsNotFound(err) {
		return mcp.ResourceNotFoundError(uri)
	}
	return protocolError(err)
}

func (s *Server) readMarkdown(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	p, err := placeOf(req.Params.URI)
	if err != nil {
		return nil, err
	}
	page, err := s.callerOf(ctx).threads.Read(ctx, threadtools.ReadArgs{Thread: p.id, From: p.from, Skip: p.skip})
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	return contents(req.Params.URI, markdown, markdownOf(page)), nil
}

func (s *Server) readDocument(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	p, err := placeOf(req.Params.URI)
	if err != nil {
		return nil, err
	}
	c, err := s.callerOf(ctx).client.UpToDate(ctx)
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	doc, err := client.Read(ctx, c, events.GetThreadDocument{ThreadID: p.id, FromMessage: &p.from})
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	raw, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return contents(req.Params.URI, document, string(raw)), nil
}

func contents(uri, mediaType, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mediaType, Text: text}}}
}

// markdownOf returns a page as Markdown. Texts are in fences that no text can close.
func markdownOf(p *threadtools.Page) string {
	var b strings.Builder
	writeHead(&b, p)
	writeMessages(&b, p)
	writeNext(&b, p)
	return b.String()
}

func writeHead(b *strings.Builder, p *threadtools.Page) {
	fmt.Fprintf(b, "# Thread %s\n\n", p.ThreadID)
	for _, line := range []struct{ name, text string }{{"title", p.Title}, {"key", p.Key}, {"agent", p.AgentID}, {"changed", p.UpdatedAt}} {
		if line.text != "" {
			fmt.Fprintf(b, "- %s: `%s`\n", line.name, strings.ReplaceAll(oneLine(line.text), "`", "'"))
		}
	}
	fmt.Fprintf(b, "\n%s\n", p.Note)
}

func writeMessages(b *strings.Builder, p *threadtools.Page) {
	for _, m := range p.Messages {
		fmt.Fprintf(b, "\n## %d %s", m.Index, m.Role)
		if m.At != "" {
			b.WriteString(" " + m.At)
		}
		if m.Skipped > 0 {
			fmt.Fprintf(b, ", from byte %d", m.Skipped)
		}
		fence := fenceFor(m.Text)
		fmt.Fprintf(b, "\n\n%s\n%s\n%[1]s\n", fence, strings.TrimSuffix(m.Text, "\n"))
	}
}

func writeNext(b *strings.Builder, p *threadtools.Page) {
	if n := p.Next; n != nil {
		fmt.Fprintf(b, "\nContinues at %s?from=%d&skip=%d\n", uriOf(p.ThreadID), n.From, n.Skip)
	}
}

// fenceFor returns a fence that is longer than any in a text.
func fenceFor(text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return strings.Repeat("`", longest+1)
}

// oneLine returns a text without line breaks, and without characters that do not show.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
}
