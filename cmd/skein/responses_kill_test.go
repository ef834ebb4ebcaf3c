package main_test

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A response whose server was killed amid its text is streamed, from then on, as what it is: the
// text that was begun ends as incomplete, and the text of the worker that took over follows whole.
func TestServe_StreamedResponseAfterKill(t *testing.T) {
	store := t.TempDir()
	s, running, released := triage(t, store)
	id := s.ask("k-1", `{"model":"triage","input":"think aloud, and wait for me","background":true}`).ID
	// read reads the stream of the response up to an event, and returns the items that have ended.
	read := func(s *server, last string) (ended []string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.HTTP+"/v1/responses/"+id+"?stream=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			data, isData := strings.CutPrefix(lines.Text(), "data: ")
			if !isData {
				continue
			}
			var e struct {
				Type string
				Item struct {
					Status  string
					Content []struct{ Text string }
				}
			}
			decode(t, data, &e)
			if e.Type == "response.output_item.done" {
				ended = append(ended, e.Item.Status+" "+e.Item.Content[0].Text)
			}
			if e.Type == last {
				return ended
			}
		}
		t.Fatalf("the stream ended without %s, after %q", last, ended)
		return nil
	}
	<-running
	read(s, "response.output_text.delta")
	untilWritten(t, store, `"Hel"`, 1)
	s.kill()
	close(released)
	again := start(t, store, "--tenant", "acme")
	want := []string{"incomplete Hel", "completed Hello."}
	for range 2 { // live, and from what is stored
		if ended := read(again, "response.completed"); !slices.Equal(ended, want) {
			t.Errorf("the items that have ended are %q, not %q", ended, want)
		}
	}
	again.stop()
}

// untilWritten returns when the files of the chunks contain the text so many times. The server writes them some
// milliseconds after it has sent them on, and a process that is killed before then loses them.
func untilWritten(t *testing.T, store, text string, times int) {
	t.Helper()
	for ; ; time.Sleep(time.Millisecond) {
		paths, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "SKEIN_CHUNKS", "msgs", "*.blk"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil {
				found += bytes.Count(data, []byte(text))
			}
		}
		if found >= times {
			return
		}
	}
}
