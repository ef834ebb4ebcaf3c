package main_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A bit that is flipped in a sealed block while Skein serves is no gap, and a thread in it is not
// missing: what cannot be read is unavailable, health names the file, and the audit names every
// thread that it could not read, and checks the others.
func TestAudit_FlippedBitWhileServing(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := startLogged(t, io.Discard, store)
	s.fill(110)
	list := decodeLines[thread](t, s.ok("thread", "list", "--json", "--limit", "200"))
	newest, oldest := list[0].ID, list[len(list)-1].ID
	block := logBlocks(t, store)[0]
	for raw := []byte(nil); !bytes.HasPrefix(raw, []byte("cmp")); time.Sleep(time.Millisecond) { // it is compressed after it was sealed
		var err error
		if raw, err = os.ReadFile(block); err != nil {
			t.Fatal(err)
		}
	}
	flip(t, block, 0.5)
	past := func(id string) outcome {
		return run(t, s.env, "", "thread", "get", id, "--at", "3", "--timeout", "5s")
	}
	for past(oldest).code == 0 { // the server has it in memory, and drops it within two minutes
		time.Sleep(11 * time.Second)
	}
	for _, args := range [][]string{{"thread", "get", oldest, "--at", "3"}, {"item", "add", oldest, "x"}, {"thread", "create", "--id", oldest}} {
		o := run(t, s.env, "", append(args, "--timeout", "5s")...)
		if o.code == 0 || !strings.HasPrefix(o.err, "skein: unavailable: ") && !strings.HasPrefix(o.err, "skein: timeout: ") {
			t.Errorf("%v: %+v", args, o)
		}
	}
	if o := past(newest); o.code != 0 {
		t.Errorf("a thread of another block: %+v", o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if code, text := readyz(t, ctx, s.HTTP); code != http.StatusServiceUnavailable || !strings.Contains(text, filepath.Join("SKEIN_LOG", "msgs", "1.blk")) {
		t.Errorf("readyz: %d %s", code, text)
	}
	// What reads the whole log, or loads a thread of the block, says what it cannot read, long before its
	// time is up.
	for _, args := range [][]string{{"tail", "--from", "1", "--follow=false"}, {"query", "history.list", `{"fromSeq":1}`}, {"item", "add", oldest, "x"}} {
		o := run(t, s.env, "", append(args, "--timeout", "20m")...)
		if o.code == 0 || !strings.HasPrefix(o.err, "skein: unavailable: stream SKEIN_LOG cannot be read from sequence ") || !strings.Contains(o.err, "skein store repair") {
			t.Errorf("%v: exit %d, %d bytes, %s", args, o.code, len(o.out), o.err)
		}
	}
	summary := regexp.MustCompile(`(?m)^(\d+) threads, `)
	for _, args := range [][]string{nil, {"--log-only"}} {
		began := time.Now()
		o := run(t, s.env, "", append([]string{"audit", "verify", "--all-tenants"}, args...)...)
		t.Logf("audit verify %v: %v", args, time.Since(began))
		read, unread := summary.FindStringSubmatch(o.out), strings.Count(o.out, "broken: acme/T-")
		if o.code != 3 || read == nil || read[1] == "0" || unread < 30 || strings.Count(o.out, "stream SKEIN_LOG") < unread {
			t.Fatalf("audit verify %v: exit %d: %s%s", args, o.code, o.out, o.err)
		}
		if n, err := strconv.Atoi(read[1]); err != nil || n+unread != 110 {
			t.Errorf("audit verify %v: %s threads were read, and %d were not, of 110", args, read[1], unread)
		}
		if !strings.Contains(o.out, "broken: acme/"+oldest) || strings.Contains(o.out, newest) || strings.Contains(o.out, "timeline: ") {
			t.Errorf("audit verify %v: %s", args, o.out)
		}
	}
	s.stop()
}
