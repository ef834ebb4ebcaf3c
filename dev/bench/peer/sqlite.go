package peer

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

//go:embed sqlite.py
var sqliteProgram []byte

// SQLite is what a run of SQLite measured: one writer, since SQLite has no more.
type SQLite struct {
	Version   string  `json:"version"`
	Nanos     []int64 `json:"nanos"` // of each commit
	Elapsed   int64   `json:"elapsed"`
	Processor int64   `json:"processor"` // nanoseconds, of Python and SQLite
	Stored    int     `json:"stored"`    // events, as counted afterwards
	Documents int     `json:"documents"`
}

// RunSQLite stores commits with their documents, a transaction each with write-ahead log and
// synchronous=FULL, in a file of a new folder within parent. The error is ErrMissing if there is no
// python3 with its module sqlite3.
func RunSQLite(ctx context.Context, parent string, w Work) (*SQLite, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, fmt.Errorf("sqlite: no python3: %w", ErrMissing)
	}
	if err := exec.CommandContext(ctx, python, "-c", "import sqlite3").Run(); err != nil {
		return nil, fmt.Errorf("sqlite: python3 has no module sqlite3: %w", ErrMissing)
	}
	dir, err := os.MkdirTemp(parent, "skein-bench-sqlite-")
	if err != nil {
		return nil, fmt.Errorf("a folder for sqlite: %w", err)
	}
	defer os.RemoveAll(dir)
	in, err := json.Marshal(struct {
		Work `json:",inline"`
		File string `json:"file"`
	}{w, filepath.Join(dir, "skein.db")})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, python, "-c", string(sqliteProgram))
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(in), &out, &said, 10*time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("sqlite: %w: %s", err, strings.TrimSpace(said.String()))
	}
	var got SQLite
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if want := len(got.Nanos) * len(w.Turn.Events); got.Stored != want {
		return nil, fmt.Errorf("sqlite: %d events are stored, want %d", got.Stored, want)
	}
	return &got, nil
}
