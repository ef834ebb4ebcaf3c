package main

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// The examples tell one story: a thread about an order, one turn, one tool.
const (
	tenant    = "acme"
	thread    = "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"
	child     = "T-0195e5d0-4d2b-7a11-8e05-2b3c4d5e6f70"
	contextID = "ctx_0195e5d03c1a7b2e9f441d2e3f405163"
	question  = "itm_0195e5d03c1a7b2e9f441d2e3f405164"
	answer    = "itm_0195e5d03c1a7b2e9f441d2e3f405165"
	execution = "exe_0195e5d03c1a7b2e9f441d2e3f405166"
	step      = "stp_0195e5d03c1a7b2e9f441d2e3f405167"
	effect    = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405168"
	command   = "0195e5d0-3c1a-7b2e-9f44-1d2e3f405169"
	moment    = "2026-02-20T12:00:00.000Z"
)

func raw(s string) events.JSON { return events.JSON(s) }

func to[T any](v T) *T { return &v }

// examples finds an example by its Go type.
type examples map[reflect.Type]any

// index refuses two examples of one type: one of them would never be shown.
func index(list []any) (examples, error) {
	found := examples{}
	for _, v := range list {
		t := reflect.TypeOf(v)
		if _, twice := found[t]; twice {
			return nil, fmt.Errorf("two examples of %s", t)
		}
		found[t] = v
	}
	return found, nil
}

// like gives the example of the type of zero.
func (e examples) like(zero any) (any, error) {
	v, ok := e[reflect.TypeOf(zero)]
	if !ok {
		return nil, fmt.Errorf("no example of %T; add one in internal/generate", zero)
	}
	return v, nil
}

// indented writes a value as the pages show it.
func indented(v any) (string, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	return string(b), err
}

func part(text string) events.JSON {
	return raw(`[{"type":"input_text","text":"` + text + `"}]`)
}

// request is the body of a command's example.
func request(c events.Command, data any) (events.Request, error) {
	body, err := json.Marshal(data, json.Deterministic(true))
	r := events.Request{CommandID: command, Data: body}
	if !c.Creates && !c.Tenant {
		r.ThreadID = thread
	}
	return r, err
}
