package traffic

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// overNATS does over NATS what overHTTP does over HTTP. Each client has a connection of its own, as
// over HTTP: those that share one also share system calls.
type overNATS struct {
	conns   []*nats.Conn // by client
	tenant  string
	agent   string
	threads []string
	names   events.Names
}

func (h *Work) overNATS(conns ...*nats.Conn) overNATS {
	return overNATS{conns, h.Tenant, h.Agent, h.Threads, events.DefaultNames()}
}

// connectAll returns a connection for each client, made as nc was, and a function that closes them.
func (h *Work) connectAll(nc *nats.Conn) (conns []*nats.Conn, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range conns {
			c.Close()
		}
	}
	opts := nc.Opts
	for range h.Clients {
		c, err := opts.Connect()
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		conns = append(conns, c)
	}
	return conns, closeAll, nil
}

// Fill adds n items to a thread.
func Fill(ctx context.Context, nc *nats.Conn, tenant, thread string, n int) error {
	o := (&Work{Tenant: tenant, Threads: []string{thread}}).overNATS(nc)
	for range n {
		if _, err := o.operations()[PostItem](ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

func (o overNATS) operations() map[string]operation {
	post := func(ctx context.Context, client int) (*events.Reply, error) {
		return o.command(ctx, client, "item.create", fmt.Sprintf(`{"threadId":%q,"data":%s}`, o.threads[client], benchItem))
	}
	chat := func(ctx context.Context, client int) (time.Duration, error) {
		return o.respond(ctx, client, rand.Text())
	}
	return map[string]operation{
		PostItem: func(ctx context.Context, client int) (time.Duration, error) {
			_, err := post(ctx, client)
			return 0, err
		},
		GetPage: func(ctx context.Context, client int) (time.Duration, error) {
			return 0, o.query(ctx, client, "item.list", fmt.Sprintf(`{"threadId":%q,"limit":%d}`, o.threads[0], PageItems))
		},
		PostAndGet: func(ctx context.Context, client int) (time.Duration, error) {
			reply, err := post(ctx, client)
			if err == nil {
				err = o.query(ctx, client, "thread.get", fmt.Sprintf(`{"threadId":%q,"minSeq":%d}`, o.threads[client], reply.Seq))
			}
			return 0, err
		},
		ResponseJSON: func(ctx context.Context, client int) (time.Duration, error) {
			_, err := o.respond(ctx, client, "")
			return 0, err
		},
		ResponseSSE: func(ctx context.Context, client int) (time.Duration, error) { return o.respond(ctx, client, "") },
		Completion:  chat, AGUI: chat,
	}
}

func (o overNATS) request(ctx context.Context, client int, subject, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	reply, err := o.conns[client].RequestWithContext(ctx, subject, []byte(body))
	if err != nil {
		return nil, err
	}
	if reply.Header.Get(events.HeaderErrorCode) != "" {
		return nil, errors.New(string(reply.Data))
	}
	return reply.Data, nil
}

func (o overNATS) command(ctx context.Context, client int, name, body string) (*events.Reply, error) {
	raw, err := o.request(ctx, client, o.names.Command(o.tenant, name), body)
	if err != nil {
		return nil, err
	}
	reply := new(events.Reply)
	return reply, json.Unmarshal(raw, reply)
}

func (o overNATS) query(ctx context.Context, client int, name, body string) error {
	_, err := o.request(ctx, client, o.names.Query(o.tenant, name), body)
	return err
}

// respond creates a thread, with a key as that of a chat has one if it is not empty, asks its agent, and
// waits for the end of the turn, as a response over HTTP does. The first chunk came after first.
func (o overNATS) respond(ctx context.Context, client int, key string) (first time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	begun := time.Now()
	thread, create := "T-"+uuid.Must(uuid.NewV7()).String(), ""
	if key != "" {
		create = fmt.Sprintf(`"key":%q`, key)
	}
	chunks, err := o.conns[client].SubscribeSync(o.names.Timeline(o.tenant, thread, events.ChunkEmittedType))
	if err != nil {
		return 0, err
	}
	defer func() { _ = chunks.Unsubscribe() }() // the connection may be closed
	if _, err := o.command(ctx, client, "thread.create", fmt.Sprintf(`{"threadId":%q,"data":{%s}}`, thread, create)); err != nil {
		return 0, err
	}
	if _, err := o.command(ctx, client, "thread.react", fmt.Sprintf(`{"threadId":%q,"data":{"text":%q,"agentId":%q}}`, thread, benchInput, o.agent)); err != nil {
		return 0, err
	}
	for {
		m, err := chunks.NextMsgWithContext(ctx)
		if err != nil {
			return 0, err
		}
		if first == 0 {
			first = time.Since(begun)
		}
		var e struct {
			Data struct {
				Type string        `json:"type"`
				Data events.Finish `json:"data"`
			} `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return 0, err
		}
		if e.Data.Type == events.ChunkFinish {
			if e.Data.Data.Reason != events.FinishStop {
				return 0, fmt.Errorf("a turn ended with %s", e.Data.Data.Reason)
			}
			return first, nil
		}
	}
}
