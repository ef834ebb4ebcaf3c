package state_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/state"
)

// Message is a message of a conversation.
type Message struct {
	Role    string `json:"role" enum:"user,assistant"`
	Content string `json:"content"`
}

// Ask is the input of the agents.
type Ask struct {
	Message string `json:"message" doc:"What the visitor says."`
	Command string `json:"command,omitempty" enum:"reset"`
}

// generate stands for your model: it returns the parts of an answer.
func generate(_ context.Context, messages []Message) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var said []string
		for _, m := range messages {
			if m.Role == "user" {
				said = append(said, m.Content)
			}
		}
		_ = yield("You said ", nil) && yield(strings.Join(said, ", ")+".", nil)
	}
}

// StateDemo: values of the request, which end with it, and of the thread, which last.
func ExampleNewAgent() { // AG-1 AG-7 AG-78 AG-83
	type Out struct {
		Response     string `json:"response"`
		RequestTime  int64  `json:"requestTime"`
		MessageCount int    `json:"messageCount"`
	}
	agent, err := state.NewAgent("StateDemo", func(ctx context.Context, in Ask) (Out, error) {
		// State of the request: gone after the response.
		if err := state.Request(ctx).Set("startTime", time.Now()); err != nil {
			return Out{}, err
		}
		// State of the thread: an hour after the last request it is gone.
		thread := state.Thread(ctx)
		messages, _, err := state.Get[[]string](ctx, thread, "messages")
		if err != nil {
			return Out{}, err
		}
		messages = append(messages, in.Message)
		if err := thread.Set(ctx, "messages", messages); err != nil {
			return Out{}, err
		}
		start, _ := state.Value[time.Time](state.Request(ctx), "startTime")
		return Out{"Received: " + in.Message, time.Since(start).Milliseconds(), len(messages)}, nil
	})
	check(err)
	app, end := example(state.Options{})
	defer end()
	web := httptest.NewServer(state.Middleware(app)(agent))
	defer web.Close()
	ada, bob := visitor{}, visitor{}
	for _, answer := range []string{
		ada.post(web.URL, `{"message":"hello"}`), ada.post(web.URL, `{"message":"again"}`), bob.post(web.URL, `{"message":"hi"}`), bob.post(web.URL, `{"message":1}`),
	} {
		var out Out
		check(json.Unmarshal([]byte(answer), &out))
		if out.MessageCount == 0 {
			fmt.Println(answer)
			continue
		}
		fmt.Println(out.Response, out.MessageCount, out.RequestTime >= 0)
	}
	// Output:
	// Received: hello 1 true
	// Received: again 2 true
	// Received: hi 1 true
	// {"error":{"code":"invalid_request","message":"the input of agent StateDemo does not fit its schema: /message: expected string, but got number"}}
}

// ConversationMemory: what was said before is the model's context, until the visitor asks for a
// new beginning.
func ExampleNewAgent_conversationMemory() { // AG-34 AG-38 AG-83
	agent, err := state.NewAgent("ConversationMemory", func(ctx context.Context, in Ask) (string, error) {
		thread := state.Thread(ctx)
		if in.Command == "reset" {
			return "Conversation reset. Thread state cleared.", thread.Destroy(ctx)
		}
		messages, _, err := state.Get[[]Message](ctx, thread, "messages")
		if err != nil {
			return "", err
		}
		turns, _, err := state.Get[int](ctx, thread, "turnCount")
		if err != nil {
			return "", err
		}
		messages = append(messages, Message{"user", in.Message})
		var text string
		for part, err := range generate(ctx, messages) {
			if err != nil {
				return "", err
			}
			text += part
		}
		messages = append(messages, Message{"assistant", text})
		if err := thread.Set(ctx, "messages", messages); err != nil {
			return "", err
		}
		if err := thread.Set(ctx, "turnCount", turns+1); err != nil {
			return "", err
		}
		state.Logger(ctx).InfoContext(ctx, "conversation turn", "turnCount", turns+1)
		return text, nil
	})
	check(err)
	app, end := example(state.Options{})
	defer end()
	web := httptest.NewServer(state.Middleware(app)(agent))
	defer web.Close()
	ada := visitor{}
	for _, say := range []string{`{"message":"one"}`, `{"message":"two"}`, `{"message":"","command":"reset"}`, `{"message":"three"}`} {
		fmt.Println(ada.post(web.URL, say))
	}
	// Output:
	// "You said one."
	// "You said one, two."
	// "Conversation reset. Thread state cleared."
	// "You said three."
}

// PersistentChat: the conversation is loaded from the key-value pairs once in the life of the
// state, kept in the state, and saved in the background after the text has been sent.
func ExampleNewStreamAgent() { // AG-8 AG-40 AG-44 AG-78 AG-83
	agent, err := state.NewStreamAgent("PersistentChat", func(ctx context.Context, in Ask) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			thread, kv := state.Thread(ctx), state.KV(ctx)
			key := "chat_" + thread.ID
			messages, err := loadOnce(ctx, thread, kv, key)
			if err != nil {
				yield("", err)
				return
			}
			messages = append(messages, Message{"user", in.Message})
			var text string
			for part, err := range generate(ctx, messages) {
				text += part
				if !yield(part, err) || err != nil {
					return
				}
			}
			messages = append(messages, Message{"assistant", text})
			messages = messages[max(0, len(messages)-20):] // so that the state stays small
			err = state.WaitUntil(ctx, func(ctx context.Context) error {
				if err := thread.Set(ctx, "messages", messages); err != nil {
					return err
				}
				return kv.Set(ctx, "conversations", key, messages, state.TTLSeconds(86_400))
			})
			if err != nil {
				yield("", err)
			}
		}
	})
	check(err)
	c, stop := server()
	defer stop()
	ada := visitor{}
	for _, say := range []string{"one", "two", "three"} { // each in a new process of the application
		app := application(c, state.Options{})
		web := httptest.NewServer(state.Middleware(app)(agent))
		fmt.Println(ada.post(web.URL, `{"message":"`+say+`"}`))
		web.Close()
		check(app.Shutdown(context.Background())) // waits for the background work
		if say == "two" {                         // the state ends, and the conversation is in the pairs
			id, _, _ := strings.Cut(ada.thread, ";")
			_, err := c.Send(context.Background(), id, events.DestroyState{})
			check(err)
		}
	}
	// Output:
	// You said one.
	// You said one, two.
	// You said one, two, three.
}

// loadOnce returns the messages of a conversation: from the state, where it puts those of the
// key-value pairs first.
func loadOnce(ctx context.Context, thread *state.ThreadScope, kv *state.KVStore, key string) ([]Message, error) {
	loaded, err := thread.Has(ctx, "kvLoaded")
	if err != nil {
		return nil, err
	}
	if loaded {
		messages, _, err := state.Get[[]Message](ctx, thread, "messages")
		return messages, err
	}
	saved, err := state.GetKV[[]Message](ctx, kv, "conversations", key)
	if err != nil {
		return nil, err
	}
	if err := thread.Set(ctx, "messages", saved.Data); err != nil {
		return nil, err
	}
	return saved.Data, thread.Set(ctx, "kvLoaded", true)
}

// The last 50 messages stay in the state, and older ones go to an archive in the background.
// (Push with 50 keeps the last ones without reading them, if the others need not be kept.)
func ExampleWaitUntil_overflow() { // AG-45 AG-77 AG-79 AG-83
	handler := func(ctx context.Context, in Ask) (int, error) {
		thread := state.Thread(ctx)
		if err := thread.Push(ctx, "messages", in.Message); err != nil {
			return 0, err
		}
		messages, _, err := state.Get[[]string](ctx, thread, "messages")
		if err != nil || len(messages) <= 50 {
			return len(messages), err
		}
		older, last := messages[:len(messages)-50], messages[len(messages)-50:]
		err = state.WaitUntil(ctx, func(ctx context.Context) error {
			key := thread.ID + "_" + strconv.FormatInt(time.Now().UnixMilli(), 10)
			if err := state.KV(ctx).Set(ctx, "archives", key, older); err != nil {
				return err
			}
			return thread.Push(ctx, "archived", key) // the state keeps the key, and not the messages
		})
		if err != nil {
			return 0, err
		}
		return len(last), thread.Set(ctx, "messages", last)
	}
	agent, err := state.NewAgent("Overflow", handler)
	check(err)
	c, stop := server()
	defer stop()
	app := application(c, state.Options{})
	web := httptest.NewServer(state.Middleware(app)(agent))
	defer web.Close()
	ada, kept := visitor{}, ""
	for n := range 51 {
		kept = ada.post(web.URL, `{"message":"message `+strconv.Itoa(n)+`"}`)
	}
	check(app.Shutdown(context.Background()))
	fmt.Println("kept", kept)
	id, _, _ := strings.Cut(ada.thread, ";")
	values, err := client.Read(context.Background(), c, events.GetState{ThreadID: id, Keys: []string{"archived"}})
	check(err)
	var state struct {
		Archived []string `json:"archived"`
	}
	check(json.Unmarshal(values.Values, &state))
	for _, key := range state.Archived {
		older, err := client.Read(context.Background(), c, events.GetKV{Bucket: "archives", Key: key})
		check(err)
		fmt.Println("archived", string(older.Value))
	}
	// Output:
	// kept 50
	// archived ["message 0"]
}

// Listeners run around the handler, and evals judge its output after the answer. Their results
// are on the log of the thread.
func ExampleWithEval() { // AG-12 AG-13 AG-82
	type run = state.AgentRun[Ask, string]
	agent, err := state.NewAgent("Greeter", func(_ context.Context, in Ask) (string, error) { return "Hello " + in.Message, nil },
		state.WithListener(state.AgentStarted, func(ctx context.Context, _ run) error {
			return state.Request(ctx).Set("greeting", "Hello")
		}),
		state.WithEval("greets", func(ctx context.Context, r run) (state.EvalResult, error) {
			greeting, _ := state.Value[string](state.Request(ctx), "greeting")
			return state.EvalResult{Passed: strings.HasPrefix(r.Output, greeting), Score: 1}, nil
		}),
		state.WithEval("short", func(_ context.Context, r run) (state.EvalResult, error) {
			return state.EvalResult{Passed: len(r.Output) < 8, Reason: fmt.Sprint(len(r.Output), " letters")}, nil
		}))
	check(err)
	c, stop := server()
	defer stop()
	app := application(c, state.Options{})
	web := httptest.NewServer(state.Middleware(app)(agent))
	defer web.Close()
	ada := visitor{}
	fmt.Println(ada.post(web.URL, `{"message":"Ada"}`))
	check(app.Shutdown(context.Background()))
	id, _, _ := strings.Cut(ada.thread, ";")
	c, err = c.UpToDate(context.Background())
	check(err)
	list, err := client.Read(context.Background(), c, events.ListLogs{ThreadID: id, GetLogsOptions: events.GetLogsOptions{Order: "asc"}})
	check(err)
	for _, line := range list.Logs {
		fmt.Println(line.Level, line.Message)
	}
	// Output:
	// "Hello Ada"
	// info eval greets of agent Greeter passed
	// warn eval short of agent Greeter did not pass: 9 letters
}

// A listener keeps what was said when the state of a thread ends: here by Destroy, and in the
// same way an hour after the last request.
func ExampleApp_Listen() { // AG-46 AG-47 AG-48 AG-51 AG-78
	type Archive struct {
		Messages []string  `json:"messages"`
		EndedAt  time.Time `json:"endedAt"`
	}
	archived := make(chan int, 1)
	archive := state.Listener{Name: "archive", Event: state.ThreadDestroyed, Run: func(ctx context.Context, e state.Event) error {
		messages, _, err := state.Get[[]string](ctx, e.Thread, "messages")
		if err != nil || len(messages) == 0 {
			return err
		}
		err = state.KV(ctx).Set(ctx, "archives", e.Thread.ID, Archive{messages, time.Now().UTC()}, state.TTLSeconds(604_800))
		if err == nil {
			archived <- len(messages)
		}
		return err
	}}
	app, end := example(state.Options{Name: "shop", Listeners: []state.Listener{archive}})
	defer end()
	go app.Listen(context.Background()) // until Shutdown
	web := httptest.NewServer(state.Middleware(app)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, thread := r.Context(), state.Thread(r.Context())
		err := thread.Push(ctx, "messages", r.FormValue("say"))
		if err == nil && r.FormValue("say") == "bye" {
			err = thread.Destroy(ctx)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})))
	defer web.Close()
	ada := visitor{}
	ada.post(web.URL+"?say=hello", "")
	ada.post(web.URL+"?say=bye", "")
	fmt.Println("archived", <-archived, "messages")
	// Output: archived 2 messages
}
