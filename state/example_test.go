package state_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/state"
)

// example returns an application on a Skein in this process, and a function that ends both. Your
// program calls client.Connect with the URL of its server.
func example(o state.Options) (app *state.App, end func()) {
	ctx := context.Background()
	store, err := os.MkdirTemp("", "skein-example-")
	check(err)
	s, err := skein.Start(ctx, skein.Options{Store: store, NATSListen: skein.None, HTTPListen: skein.None, Volatile: true, Logger: zerolog.Nop()})
	check(err)
	o.Client, err = s.Client("acme")
	check(err)
	o.Keys = [][]byte{[]byte("read this from a secret store....")}
	o.Logger = slog.New(slog.DiscardHandler)
	app, err = state.New(ctx, o)
	check(err)
	return app, func() {
		check(app.Shutdown(ctx))
		check(s.Stop(ctx))
		check(os.RemoveAll(store))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A handler that remembers what its visitor said. The visitor's client returns the header
// x-thread-id of each response; a browser does the same with a cookie.
func ExampleMiddleware() {
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
	visitor := ""
	for _, say := range []string{"one", "two", "three"} {
		r, err := http.NewRequest(http.MethodGet, web.URL+"?say="+say, http.NoBody)
		check(err)
		if visitor != "" {
			r.Header.Set(state.ThreadHeader, visitor)
		}
		response, err := http.DefaultClient.Do(r)
		check(err)
		body, err := io.ReadAll(response.Body)
		check(err)
		check(response.Body.Close())
		visitor = response.Header.Get(state.ThreadHeader)
		fmt.Println(string(body))
	}
	// Output:
	// You said one.
	// You said one, two.
	// You said two, three.
}

// Each user has one thread on all devices. The user comes from what authenticated the request:
// here from the client certificate that the server has verified.
func ExampleUserThreads() {
	user := func(r *http.Request) string {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return ""
		}
		return r.TLS.VerifiedChains[0][0].Subject.CommonName
	}
	app, end := example(state.Options{ThreadIDs: state.UserThreads(user), User: user})
	defer end()
	handler := state.Middleware(app)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(len(state.Thread(r.Context()).ID))
	}))
	// Nobody is authenticated: every request is a new visitor's, with 32 digits after thrd_.
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	// Output: 37
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
