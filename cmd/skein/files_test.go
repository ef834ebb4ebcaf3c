package main_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Files on the command line, against a server process: SA-112, SA-113, SA-115, SA-119,
// SA-120, SA-121, SA-130.
func TestFiles_CommandLine(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	defer s.stop()
	var made struct{ ThreadID string }
	decode(t, s.ok("thread", "create", "--json"), &made)
	id := made.ThreadID
	dir := t.TempDir()
	big := make([]byte, 3<<20+1)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(big)
	from := filepath.Join(dir, "big.bin")
	if err := os.WriteFile(from, big, 0o600); err != nil {
		t.Fatal(err)
	}
	var record events.FileRecord
	decode(t, s.ok("files", "put", id, from, "/data/big.bin", "--json", "--metadata", `{"a":1}`), &record)
	if record.Path != "/data/big.bin" || record.Size != int64(len(big)) || string(record.Metadata) != `{"a":1}` {
		t.Errorf("%+v", record)
	}
	if o := run(t, s.env, "one\ntwo\n", "files", "put", id, "-", "notes/list.txt"); o.code != 0 || !strings.Contains(o.out, "/notes/list.txt") {
		t.Errorf("%+v", o)
	}
	s.ok("files", "put", id, "/away.mp4", "--external", "s3://b/away.mp4", "--size", "7")
	if got := s.ok("files", "cat", id, "/data/big.bin"); got != string(big) {
		t.Errorf("%d bytes", len(got))
	}
	to := filepath.Join(dir, "saved")
	s.ok("files", "get", id, "data/big.bin", to)
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".skein-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if got := decodeLines[events.FileRecord](t, s.ok("files", "ls", id, "--json")); len(got) != 3 || got[0].Name != "away.mp4" || !got[1].IsDirectory {
		t.Errorf("%+v", got)
	}
	if got := s.ok("files", "grep", id, "^t"); got != "/notes/list.txt:2:two\n" {
		t.Error(got)
	}
	if got := s.ok("files", "find", id, "**/*.txt"); got != "/notes/list.txt\n" {
		t.Error(got)
	}
	if got := s.ok("files", "du", id); got != "3 files, 2 directories, 3145744 bytes\n" {
		t.Error(got)
	}
	s.ok("files", "mkdir", id, "/empty/er")
	s.ok("files", "rm", id, "/empty/er", "--dir")
	version := record.Version
	s.ok("files", "rm", id, "/data/big.bin", "/none")
	if got := s.ok("files", "stat", id, "/data/big.bin", "--at", strconv.FormatInt(version, 10), "--json"); !strings.Contains(got, record.Digest) {
		t.Error(got)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"files", "cat", id, "/data/big.bin"}, 1, "skein: not_found: file not found: /data/big.bin"},
		{[]string{"files", "cat", id, "/away.mp4"}, 1, "is stored elsewhere: s3://b/away.mp4"},
		{[]string{"files", "cat", id, "../x"}, 1, "skein: invalid_request:"},
		{[]string{"files", "rm", id, "/notes"}, 1, "skein: illegal_transition: /notes is a directory"},
		{[]string{"files", "put", id, "/no/such/file", "/x"}, 2, "skein: usage:"},
		{[]string{"files", "gc", "--grace", "1m"}, 2, "skein: usage: --grace"},
	} {
		if o := run(t, s.env, "", c.args...); o.code != c.code || !strings.Contains(o.err, c.says) {
			t.Errorf("%v: %+v", c.args, o)
		}
	}
	if got := s.ok("files", "gc"); !strings.HasPrefix(got, "2 objects of") || !strings.Contains(got, "0 of 0 bytes are unreferenced") {
		t.Error(got)
	}
}

// A kill during a write leaves the old version intact, and what was acknowledged is
// there: for a killed server and a killed writer.
func TestFiles_KillDuringWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	connect := func() *client.Client {
		c, err := client.Connect(s.NATS, client.Options{Tenant: "acme", Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	c := connect()
	made, err := c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	old := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(old)
	if _, err := c.Files(made.ThreadID).WriteFile(t.Context(), "/f", old, "", client.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}

	// The writer is killed: a process that reads an endless input.
	cmd := exec.Command(binary, "files", "put", made.ThreadID, "-", "/f")
	cmd.Env = environment(s.env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if _, err := in.Write(make([]byte, 512<<10)); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	same := func(when string) {
		t.Helper()
		data, err := c.Files(made.ThreadID).ReadFile(t.Context(), "/f")
		if err != nil || !bytes.Equal(data, old) {
			t.Fatalf("%s: %d bytes, %v", when, len(data), err)
		}
	}
	same("after the writer was killed")

	// The server is killed in the middle of an upload.
	var sent int
	_, err = c.Files(made.ThreadID).WriteFileFrom(t.Context(), "/f", reader(func(p []byte) (int, error) {
		if sent += len(p); sent > 6<<20 {
			_ = s.cmd.Process.Signal(syscall.SIGKILL)
			_ = s.cmd.Wait()
			return 0, errors.New("the server is gone")
		}
		return len(p), nil
	}), "", client.WriteFileOptions{})
	if err == nil {
		t.Fatal("it was written")
	}
	s = start(t, dir)
	defer s.stop()
	c = connect()
	same("after the server was killed")
	if _, err := c.Files(made.ThreadID).WriteFile(context.Background(), "/f", []byte("new"), "", client.WriteFileOptions{}); err != nil {
		t.Error(err)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
