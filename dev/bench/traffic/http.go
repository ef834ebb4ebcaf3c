package traffic

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Cases.
const (
	PostItem     = "item"         // POST .../items, and item.create
	PostAndGet   = "item-thread"  // the same, and then the thread that shows it
	GetPage      = "page"         // a page of items
	ResponseJSON = "response"     // POST /v1/responses, and a thread with a turn
	ResponseSSE  = "response-sse" // the same as a stream
	Completion   = "completion"   // the same over POST /v1/chat/completions, in a chat of its own
	AGUI         = "agui"         // the same over POST /agui/{agent}
	FanOut       = "fan-out"      // one thread's events to many readers
)

// PageItems is how many items a page has.
const PageItems = 50

// Cases lists the cases.
func Cases() []string {
	return []string{PostItem, PostAndGet, GetPage, ResponseJSON, ResponseSSE, Completion, AGUI, FanOut}
}

// Streams reports whether the answer to a case is a stream.
func Streams(name string) bool { return name == ResponseSSE || name == Completion || name == AGUI }

// Work is what clients do, over HTTP or over NATS.
type Work struct {
	Case    string   `json:"case"`         // one of Cases
	URL     string   `json:"url,omitzero"` // of HTTP; over NATS if it is empty
	Key     string   `json:"key,omitzero"` // of HTTP, if it wants one
	Tenant  string   `json:"tenant"`
	Agent   string   `json:"agent"`
	Clients int      `json:"clients"`
	Millis  int64    `json:"millis"`
	Threads []string `json:"threads"` // each client uses its own; a page is of the first
	Readers int      `json:"readers"` // of the first thread's events
	Events  int      `json:"events"`  // that are written for them
}

// Times are what clients saw, in nanoseconds.
type Times struct {
	Whole   []int64 // of each operation
	First   []int64 // until the first part of an answer arrived, if answers have parts
	Elapsed int64
	WarmUps int // operations that were done before, and are not measured
	Refused int
	Error   string // the first refusal
}

// operation is one operation of a client. The time until something of the answer arrived is first, if
// the operation has an answer in parts.
type operation func(ctx context.Context, client int) (first time.Duration, err error)

const (
	benchItem   = `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Where is my order 42? I need it this week."}]}}`
	benchInput  = "Where is my order 42? I need it this week."
	warmUps     = 20 // operations of each client that are not measured
	httpTimeout = 30 * time.Second
)

// Run does the work. Clients over NATS connect as nc did, which writes the events of FanOut.
func (h *Work) Run(ctx context.Context, nc *nats.Conn) (*Times, error) {
	if h.Case == FanOut {
		return h.fanOut(ctx, nc)
	}
	var do operation
	if h.URL == "" {
		conns, closeAll, err := h.connectAll(nc)
		if err != nil {
			return nil, err
		}
		defer closeAll()
		do = h.overNATS(conns...).operations()[h.Case]
	} else {
		do = overHTTP{newHTTPClient(h.Clients), h.URL, h.Key, h.Agent, h.Threads}.operations()[h.Case]
	}
	if do == nil {
		return nil, fmt.Errorf("there is no case %q", h.Case)
	}
	return h.repeat(ctx, do)
}

// repeat does one operation after another, from each client.
func (h *Work) repeat(ctx context.Context, do operation) (*Times, error) {
	type times struct{ whole, first []int64 }
	took := make([]times, h.Clients)
	var refused atomic.Int64
	var failed atomic.Pointer[string]
	var ready, working sync.WaitGroup
	begin := make(chan time.Time)
	ready.Add(h.Clients)
	for w := range h.Clients {
		working.Go(func() {
			for range warmUps {
				_, _ = do(ctx, w) // a refusal shows later, too
			}
			ready.Done()
			end := (<-begin).Add(time.Duration(h.Millis) * time.Millisecond)
			for ctx.Err() == nil {
				begun := time.Now()
				if begun.After(end) {
					return
				}
				first, err := do(ctx, w)
				if err != nil {
					text := err.Error()
					refused.Add(1)
					failed.CompareAndSwap(nil, &text)
					continue
				}
				took[w].whole = append(took[w].whole, time.Since(begun).Nanoseconds())
				if first > 0 {
					took[w].first = append(took[w].first, first.Nanoseconds())
				}
			}
		})
	}
	ready.Wait()
	start := time.Now()
	for range h.Clients {
		begin <- start
	}
	working.Wait()
	out := &Times{Elapsed: time.Since(start).Nanoseconds(), WarmUps: warmUps * h.Clients, Refused: int(refused.Load())}
	if text := failed.Load(); text != nil {
		out.Error = *text
	}
	for _, t := range took {
		out.Whole, out.First = append(out.Whole, t.whole...), append(out.First, t.first...)
	}
	return out, nil
}

func newHTTPClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true}}
}

// overHTTP does the operations over HTTP.
type overHTTP struct {
	http    *http.Client
	url     string
	key     string
	agent   string
	threads []string
}

func (o overHTTP) operations() map[string]operation {
	post := func(ctx context.Context, client int) error {
		_, err := o.ask(ctx, "POST", "/api/threads/"+o.threads[client]+"/items", benchItem, http.StatusCreated)
		return err
	}
	response := func(stream bool) operation {
		body := fmt.Sprintf(`{"model":%q,"input":%q,"stream":%t}`, o.agent, benchInput, stream)
		return func(ctx context.Context, _ int) (time.Duration, error) {
			first, err := o.ask(ctx, "POST", "/v1/responses", body, http.StatusOK)
			if !stream {
				first = 0
			}
			return first, err
		}
	}
	completion := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}],"stream":true,"stream_options":{"include_usage":true}}`, o.agent, benchInput)
	return map[string]operation{
		PostItem: func(ctx context.Context, client int) (time.Duration, error) { return 0, post(ctx, client) },
		Completion: func(ctx context.Context, _ int) (time.Duration, error) {
			return o.ask(ctx, "POST", "/v1/chat/completions", completion, http.StatusOK, "Skein-Thread", rand.Text())
		},
		AGUI: func(ctx context.Context, _ int) (time.Duration, error) {
			body := fmt.Sprintf(`{"threadId":%[1]q,"runId":%[1]q,"protocolVersion":"1.0","messages":[{"id":%[1]q,"role":"user","content":%[2]q}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`, rand.Text(), benchInput)
			return o.ask(ctx, "POST", "/agui/"+o.agent, body, http.StatusOK)
		},
		GetPage: func(ctx context.Context, _ int) (time.Duration, error) {
			_, err := o.ask(ctx, "GET", fmt.Sprintf("/api/threads/%s/items?limit=%d", o.threads[0], PageItems), "", http.StatusOK)
			return 0, err
		},
		PostAndGet: func(ctx context.Context, client int) (time.Duration, error) {
			err := post(ctx, client)
			if err == nil {
				_, err = o.ask(ctx, "GET", "/api/threads/"+o.threads[client], "", http.StatusOK)
			}
			return 0, err
		},
		ResponseJSON: response(false),
		ResponseSSE:  response(true),
	}
}

// Create creates a thread over HTTP, with a key.
func Create(ctx context.Context, url, key string) (string, error) {
	o := overHTTP{http: newHTTPClient(1), url: url, key: key}
	defer o.http.CloseIdleConnections()
	return o.create(ctx)
}

func (o overHTTP) create(ctx context.Context) (string, error) {
	var reply events.Reply
	_, answer, err := o.answer(ctx, "POST", "/api/threads", "{}", http.StatusCreated)
	if err == nil {
		err = json.Unmarshal(answer, &reply)
	}
	return reply.ThreadID, err
}

// ask sends a request, with headers in pairs, and reads the answer, whose first bytes came after first.
func (o overHTTP) ask(ctx context.Context, method, path, body string, status int, headers ...string) (first time.Duration, err error) {
	first, _, err = o.answer(ctx, method, path, body, status, headers...)
	return first, err
}

// failedIn reports whether an answer tells that the run has failed.
func failedIn(answer []byte) bool {
	for _, sign := range []string{`"status":"failed"`, `"type":"RUN_ERROR"`, `data: {"error":`} {
		if bytes.Contains(answer, []byte(sign)) {
			return true
		}
	}
	return false
}

// answer is ask with the answer's body.
func (o overHTTP) answer(ctx context.Context, method, path, body string, status int, headers ...string) (first time.Duration, text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, method, o.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if o.key != "" {
		req.Header.Set("Authorization", "Bearer "+o.key)
	}
	r, err := o.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = r.Body.Close() }()
	var answer bytes.Buffer
	if _, err = io.CopyN(&answer, r.Body, 1); err == nil {
		first = time.Since(begun)
		_, err = answer.ReadFrom(r.Body)
	}
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	case r.StatusCode != status:
		return 0, nil, fmt.Errorf("%s %s: %d %.300s", method, path, r.StatusCode, answer.Bytes())
	case failedIn(answer.Bytes()):
		return 0, nil, errors.New("a response failed")
	}
	return first, answer.Bytes(), nil
}
