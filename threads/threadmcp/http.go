package threadmcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/events"
)

// Path is where Handler serves.
const Path = "/mcp"

// The bounds of HTTP.
const (
	maxBody     = 4 << 20
	maxRequests = 64 // in flight
	minToken    = 16
)

// CheckToken reports what is wrong with a token.
func CheckToken(token string) error {
	if len(token) < minToken {
		return events.Errorf(events.InvalidRequest, "the token has %d characters; use at least %d that nobody can guess, such as those of openssl rand -hex 32", len(token), minToken)
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return events.Errorf(events.InvalidRequest, "the token has a space or a character that HTTP headers cannot have; use letters and digits")
		}
	}
	return nil
}

// HTTP serves streamable HTTP for requests whose host and credential were checked. It keeps no
// sessions. A call that tells its progress is answered by a stream, and other requests by JSON.
func (s *Server) HTTP() http.Handler {
	transport := func(json bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
			Stateless: true, JSONResponse: json, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true, DisableLocalhostProtection: true,
		})
	}
	whole, stream := transport(true), transport(false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusing := &refusing{ResponseWriter: w}
		if asksProgress(r) {
			stream.ServeHTTP(refusing, r)
		} else {
			whole.ServeHTTP(refusing, r)
		}
		refusing.end()
	})
}

// asksProgress reports whether a request is a call that tells its progress, and asks for it. The body
// is there to be read again.
func asksProgress(r *http.Request) bool {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	r.Body = replayed{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	if err != nil || !bytes.Contains(body, []byte("progressToken")) {
		return false
	}
	m, err := jsonrpc.DecodeMessage(body)
	call, ok := m.(*jsonrpc.Request)
	if err != nil || !ok || !call.IsCall() || call.Method != "tools/call" {
		return false
	}
	var p mcp.CallToolParamsRaw
	return json.Unmarshal(call.Params, &p) == nil && p.Name == askTool && p.GetProgressToken() != nil
}

// replayed is a body of which a part was read before.
type replayed struct {
	io.Reader
	io.Closer
}

// refusing turns the refusals of the transport, which are plain text, into errors of JSON-RPC.
type refusing struct {
	http.ResponseWriter
	status int // of a refusal; 0: there is none
	text   strings.Builder
}

// Unwrap returns what is wrapped, for http.ResponseController.
func (w *refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader holds a refusal back.
func (w *refusing) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusing) Write(b []byte) (int, error) {
	if w.status != 0 {
		return w.text.Write(b)
	}
	n := len(b)
	if _, err := w.ResponseWriter.Write(withoutTypes(b)); err != nil {
		return 0, err
	}
	return n, nil
}

// withoutTypes returns a message without the types of this program, which the sdk names where parameters
// do not fit them.
func withoutTypes(message []byte) []byte {
	if !bytes.Contains(message, []byte("unmarshaling")) {
		return message
	}
	m, err := jsonrpc.DecodeMessage(bytes.TrimSpace(message))
	answer, ok := m.(*jsonrpc.Response)
	var refusal *jsonrpc.Error
	if err != nil || !ok || !errors.As(answer.Error, &refusal) || refusal.Code != jsonrpc.CodeInvalidParams {
		return message
	}
	plain := *refusal
	said, _, _ := strings.Cut(refusal.Message, ": unmarshaling")
	plain.Message = said + ": they have another shape than the method's parameters"
	raw, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: answer.ID, Error: &plain})
	if err != nil {
		return message
	}
	if bytes.HasSuffix(message, []byte("\n")) {
		raw = append(raw, '\n')
	}
	return raw
}

// end sends the refusal. It has no id: the transport does not tell that of what it refuses.
func (w *refusing) end() {
	if w.status == 0 {
		return
	}
	var refusal struct {
		Version string    `json:"jsonrpc"`
		ID      *struct{} `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	refusal.Version, refusal.Error.Code, refusal.Error.Message = "2.0", invalidRequest, strings.TrimSpace(w.text.String())
	if said, _, decoding := strings.Cut(refusal.Error.Message, ": unmarshaling"); decoding {
		refusal.Error.Message = said + ": it is not a message of JSON-RPC"
	}
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(w.status)
	_ = json.NewEncoder(w.ResponseWriter).Encode(refusal)
}

// invalidRequest is the code of JSON-RPC for a request that is none.
const invalidRequest = -32600

// Handler is HTTP at Path, for requests to this machine with the token.
func (s *Server) Handler(token string) http.Handler {
	serve := s.HTTP()
	want := sha256.Sum256([]byte(token))
	places := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !ownHost(r.Host):
			http.Error(w, "the request names another host; use 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
			return
		case !ownOrigin(r):
			http.Error(w, "requests of web pages are refused", http.StatusForbidden)
			return
		}
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(given))
		if right := subtle.ConstantTimeCompare(got[:], want[:]) == 1; !right || !strings.EqualFold(scheme, "Bearer") {
			w.Header().Set("WWW-Authenticate", `Bearer realm="skein"`)
			http.Error(w, "send the token of skein mcp: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		if r.URL.Path != Path {
			http.Error(w, "the threads are at "+Path, http.StatusNotFound)
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests at once; try again", http.StatusServiceUnavailable)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

// ownHost reports whether a Host header names this machine by its loopback interface. A page of
// a browser can reach this port by a name of its own that resolves to this machine.
func ownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// ownOrigin reports whether a request comes from no web page, or from one of this server, which
// has none.
func ownOrigin(r *http.Request) bool {
	origin, ok := r.Header["Origin"]
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return false
	}
	return !ok || len(origin) == 1 && strings.EqualFold(origin[0], "http://"+r.Host)
}

// Listen listens on a loopback address.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, events.Invalid("/listen", "%q is not a host and a port, such as 127.0.0.1:8421", address)
	}
	if ip := net.ParseIP(host); !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
		return nil, events.Invalid("/listen", "will not listen on %q: only loopback addresses such as 127.0.0.1:8421 are allowed, as there is no TLS", address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "listen on %s: %w; choose another port, or 0 for a free one", address, err)
	}
	return l, nil
}

// ServeHTTP serves HTTP on a listener, which it closes, until ctx ends.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, token string) error {
	server := &http.Server{
		Handler: s.Handler(token), MaxHeaderBytes: 32 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: callTime + time.Minute, IdleTimeout: 2 * time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close() // a client that does not read
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
