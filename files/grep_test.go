package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// hardFiles stores text on which an expression of dots has the most work, and
// returns a viewer and the records.
func hardFiles(t *testing.T, w *world, n int) (*files.Viewer, []events.FileRecord) {
	t.Helper()
	c := w.client("acme")
	id := w.thread(c)
	var list []events.FileRecord
	for i := range n {
		text := bytes.Repeat([]byte(strings.Repeat("x", 200_000)+string(rune('a'+i))), 5)
		file, err := c.Files(id).WriteFile(t.Context(), "/"+string(rune(97+i)), text, "text/plain", client.WriteFileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, *file)
	}
	return files.NewViewer(w.store, nil, nil), list
}

func TestGrep_RefusesALargePattern(t *testing.T) {
	viewer, list := hardFiles(t, newWorld(t, files.ServiceConfig{}), 1)
	var pattern strings.Builder // that begin alike would become one
	for i := range 450 {
		fmt.Fprintf(&pattern, "%c.{999}|", rune(0x100+i))
	}
	_, err := viewer.Grep(t.Context(), "acme", list, pattern.String(), 10)
	var refused *events.Error
	if !errors.As(err, &refused) || refused.Code != events.InvalidRequest || refused.Details.Path != "/pattern" || !strings.Contains(err.Error(), "instructions") {
		t.Errorf("%v", err)
	}
}

// A search that has ended works no more, whatever its pattern, also where nobody
// waits for it any longer: its place is free when its work has ended.
func TestGrep_EndsItsWorkWithItsContext(t *testing.T) {
	viewer, list := hardFiles(t, newWorld(t, files.ServiceConfig{}), 4)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	found, err := viewer.Grep(ctx, "acme", list, "("+strings.Repeat(".{900}|", 9)+"y{900}){1}z", 10)
	if err == nil && !found.Truncated {
		t.Fatalf("the search was over before its time: %+v", found)
	}
	if ctx.Err() == nil {
		t.Error("the search ended by itself")
	}
	stacks := make([]byte, 8<<20)
	if at := bytes.Index(stacks[:runtime.Stack(stacks, true)], []byte("files.(*search)")); at >= 0 {
		t.Errorf("it is still at work: %.300s", stacks[at:])
	}
}
