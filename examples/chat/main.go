// Chat is a chat page in plain JavaScript, with an agent that tells a slow story. Reload the page
// in the middle of a sentence: it goes on.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/skein-threads/skein"
)

const story = "Once upon a time there was a thread that never broke, however often the page was closed. " +
	"Its readers came back, found the sentence where it was, and read on."

// tell streams the story word by word; your model's answer would be here.
func tell(ctx context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	for word := range strings.SplitAfterSeq(story, " ") {
		out.Chunk(skein.Chunk{Type: "text-delta", Data: fmt.Appendf(nil, `{"id":"story","delta":%q}`, word)})
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return skein.Answer(story), nil
}

func main() {
	dir := cmp.Or(os.Getenv("PAGE"), filepath.Join("examples", "chat"))
	s, err := skein.Start(context.Background(), skein.Options{
		Store: cmp.Or(os.Getenv("STORE"), "chat-data"), NATSListen: skein.None, HTTPListen: skein.None, Tenant: "acme",
		Setup: func(s *skein.Server) error { return s.Reactor("storyteller", tell) },
	})
	check(err)
	mux := http.NewServeMux()
	mux.Handle("/chat", s.Handler())
	mux.Handle("/chat/", s.Handler())
	for path, file := range map[string]string{"GET /{$}": "page.html", "GET /chat.js": "chat.js"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(dir, file)) })
	}
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"))
	check(err)
	fmt.Println("listening on http://" + listener.Addr().String())
	check((&http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}).Serve(listener))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
