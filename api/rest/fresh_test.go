package rest_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// What a caller has written, its next request shows, without saying so: of the thread that it
// names, and in lists of the tenant.
func TestReads_ShowOwnWrites(t *testing.T) {
	t.Parallel()
	s := start(t)
	var thread string
	for n := range 20 {
		key := fmt.Sprint("own-", n)
		made := s.ask("POST", "/api/threads", `{"key":"`+key+`","title":"one"}`).want(http.StatusCreated)
		thread = made.header.Get("Location")
		for _, path := range []string{thread, "/api/threads/key:" + key} {
			s.ask("GET", path, "").want(http.StatusOK)
		}
		if list := s.ask("GET", "/api/threads?limit=1", "").want(http.StatusOK); !strings.Contains(string(list.body), id(thread)) {
			t.Fatalf("the list: %.300s", list.body)
		}
		item := s.ask("POST", thread+"/items", hello).want(http.StatusCreated)
		s.ask("GET", item.header.Get("Location"), "").want(http.StatusOK)
		if total := s.ask("GET", thread+"/items", "").text("total"); total != "1" {
			t.Fatalf("%s items", total)
		}
		s.ask("POST", "/api/commands/thread.update", `{"threadId":"`+id(thread)+`","data":{"title":"two"}}`).want(http.StatusOK)
		if title := s.ask("POST", "/api/queries/thread.get", `{"threadId":"`+id(thread)+`"}`).text("title"); title != "two" {
			t.Fatalf("the title is %s", title)
		}
		child := s.ask("POST", thread+"/fork", `{"version":3}`).want(http.StatusCreated).header.Get("Location")
		s.ask("GET", child, "").want(http.StatusOK)
		for _, size := range []int{10, events.InlineFileBytes + 1} {
			at := thread + "/files/" + strconv.Itoa(size)
			s.ask("PUT", at, strings.Repeat("x", size), "Content-Type", "text/plain").want(http.StatusCreated)
			s.ask("HEAD", at, "").want(http.StatusOK)
		}
		name := fmt.Sprint("prompt-", n)
		s.ask("PUT", "/api/definitions/prompt/"+name, `{"name":"`+name+`","text":"Be kind."}`).want(http.StatusOK)
		s.ask("GET", "/api/definitions/prompt/"+name, "").want(http.StatusOK)
	}
	s.ask("DELETE", thread, "").want(http.StatusOK)
	s.ask("GET", thread, "").problem(http.StatusNotFound, "not_found", "")
}

// What is never reached is told as projection_behind, with how far the read model is, before the
// time of a request is over.
func TestReads_ProjectionBehind(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.ask("POST", "/api/threads", `{}`).want(http.StatusCreated).header.Get("Location")
	began := time.Now()
	var all sync.WaitGroup
	for _, c := range [][]string{
		{"GET", "/api/threads", "", "Skein-Min-Seq", "99999"},
		{"POST", "/api/queries/thread.list", `{"minSeq":99999}`},
		{"GET", thread + "?minVersion=9999", ""},
		{"GET", thread + "/items?minVersion=9999", ""},
	} {
		all.Go(func() {
			message := s.ask(c[0], c[1], c[2], c[3:]...).problem(http.StatusServiceUnavailable, "projection_behind", "")
			if !strings.Contains(message, "not yet 9999") {
				t.Errorf("%v: %s", c, message)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 3*events.FreshWait { // a request has 20 s
		t.Errorf("it took %v", took)
	}
}
