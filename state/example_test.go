package state_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/state"
)

// example returns an application on a Skein in this process, and a function that ends both.
func example(o state.Options) (app *state.App, end func()) {
	c, stop := server()
	app = application(c, o)
	return app, func() {
		check(app.Shutdown(context.Background()))
		stop()
	}
}

// application returns an application.
func application(c *client.Client, o state.Options) *state.App {
	o.Client = c
	o.Keys = [][]byte{[]byte("read this from a secret store....")}
	o.Logger = slog.New(slog.DiscardHandler)
	app, err := state.New(context.Background(), o)
	check(err)
	return app
}

// server returns a client of a Skein in this process, and a function that stops that. Your
// program calls client.Connect with the URL of its server.
func server() (c *client.Client, stop func()) {
	ctx := context.Background()
	store, err := os.MkdirTemp("", "skein-example-")
	check(err)
	s, err := skein.Start(ctx, skein.Options{Store: store, NATSListen: skein.None, HTTPListen: skein.None, Volatile: true, Logger: zerolog.Nop()})
	check(err)
	c, err = s.Client("acme")
	check(err)
	return c, func() {
		check(s.Stop(ctx))
		check(os.RemoveAll(store))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// visitor is a client that keeps its thread as any client does: it sends the header of each
// response with the next request.
type visitor struct{ thread string }

func (v *visitor) post(url, body string) string {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	check(err)
	if v.thread != "" {
		r.Header.Set(state.ThreadHeader, v.thread)
	}
	response, err := http.DefaultClient.Do(r)
	check(err)
	answer, err := io.ReadAll(response.Body)
	check(err)
	check(response.Body.Close())
	v.thread = response.Header.Get(state.ThreadHeader)
	return string(answer)
}

// A handler that remembers what its visitor said. The visitor's client returns the header
// x-thread-id of each response; a browser does the same with a cookie.
func ExampleMiddleware() { // AG-78
	app, end := example(state.Options{})
	defer end()
	web := httptest.NewServer(state.Middleware(app)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		thread := state.Thread(ctx)
		if err := thread.Push(ctx, "messages", r.FormValue("say"), 2); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		messages, _, err := state.Get[[]string](ctx, thread, "messages")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "You said %s.", strings.Join(messages, ", "))
	})))
	defer web.Close()
	ada := visitor{}
	for _, say := range []string{"one", "two", "three"} {
		fmt.Println(ada.post(web.URL+"?say="+say, ""))
	}
	// Output:
	// You said one.
	// You said one, two.
	// You said two, three.
}

// Each user has one thread on all devices. The user comes from what authenticated the request:
// here from a proxy in front of the server, whose header is believed only if it comes from there.
func ExampleUserThreads() { // AG-63 AG-64 AG-65 AG-83 AG-86
	user := state.ProxyUser("x-user-id", netip.MustParsePrefix("10.1.0.0/24"))
	app, end := example(state.Options{ThreadIDs: state.UserThreads(user), User: user})
	defer end()
	handler := state.Middleware(app)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, state.Thread(r.Context()).ID)
	}))
	thread := func(from string) string {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = from
		r.Header.Set("x-user-id", "ada")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	fmt.Println(thread("10.1.0.7:4000"))
	fmt.Println(thread("10.1.0.8:4000"))
	fmt.Println(len(thread("192.0.2.1:4000")), "characters: the thread of a visitor who only says to be Ada")
	// Output:
	// thrd_fdee430d40bd57deeac186cd979
	// thrd_fdee430d40bd57deeac186cd979
	// 37 characters: the thread of a visitor who only says to be Ada
}

// Work that the response does not wait for. Its writes are saved when it ends.
func ExampleWaitUntil() {
	app, end := example(state.Options{})
	handler := state.Middleware(app)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := state.WaitUntil(r.Context(), func(ctx context.Context) error {
			return state.KV(ctx).Set(ctx, "conversations", "chat_"+state.Thread(ctx).ID, "a summary", state.TTLSeconds(86400))
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Println("answered")
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	end() // which waits
	fmt.Println("saved")
	// Output:
	// answered
	// saved
}
