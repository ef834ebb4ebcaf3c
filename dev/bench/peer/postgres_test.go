package peer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skein-threads/skein/dev/bench/peer/peertest"
)

// A commit at a version that was stored meanwhile is refused, with its documents; what is measured
// is durable; and a stopped server leaves nothing.
func TestPostgres(t *testing.T) {
	dir := filepath.Join(peertest.Dir(t), strings.Repeat("long", 20)) // too long for a socket
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := StartPostgres(t.Context(), dir)
	if errors.Is(err, ErrMissing) {
		t.Skip("there is no Postgres on PATH or in /usr/lib/postgresql")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	w := PostgresWork{DSN: server.DSN(), Shape: Notify, Work: Work{Clients: 1, Turn: Turn{
		Thread: "T-x", Nonce: "nnn",
		Events:    []Row{{Kind: "a", Body: "1"}, {Kind: "b", Body: "2"}},
		Documents: []Row{{Kind: "threads", Key: "T-x", Body: "t"}, {Kind: "items", Key: "T-x.nnn", Body: "i"}},
	}}}
	for _, shape := range Shapes() {
		w.Shape = shape
		if err := w.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		pool, err := pgxpool.New(t.Context(), w.DSN)
		if err != nil {
			t.Fatal(err)
		}
		write := w.writer(pool)
		for i, step := range []struct {
			nonce   string
			version int64
			taken   bool
		}{{"n1", 1, false}, {"n2", 3, false}, {"n3", 2, true}, {"n3", 4, true}} {
			err := write(t.Context(), "T-1", step.nonce, step.version)
			var refused *pgconn.PgError
			if taken := errors.As(err, &refused) && refused.Code == "23505"; taken != step.taken || err != nil && !taken {
				t.Errorf("%s, step %d: %v", shape, i, err)
			}
		}
		pool.Close()
		if err := w.Check(t.Context(), 2); err != nil {
			t.Error(err)
		}
		if err := w.Check(t.Context(), 3); err == nil {
			t.Error("a missing commit is not noticed")
		}
		if got, want := documentsOf(t, w), map[Shape]int{Rows: 0, Documents: 3, Notify: 3}[shape]; got != want {
			t.Errorf("%s: %d documents, want %d", shape, got, want)
		}
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if _, err := os.Stat(server.socket); !errors.Is(err, fs.ErrNotExist) || server.socket == server.dir {
		t.Errorf("the folder of the socket, %s: %v", server.socket, err)
	}
	if server.cmd.ProcessState == nil {
		t.Error("the server has not ended")
	}
}

func documentsOf(t *testing.T, w PostgresWork) (n int) {
	t.Helper()
	err := w.with(context.Background(), func(conn *pgx.Conn) error {
		var durable, synchronous string
		err := conn.QueryRow(context.Background(), "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(&durable, &synchronous)
		if durable != "on" || synchronous != "on" {
			t.Errorf("fsync is %q, synchronous_commit %q", durable, synchronous)
		}
		return errors.Join(err, conn.QueryRow(context.Background(), "SELECT count(*) FROM documents").Scan(&n))
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
