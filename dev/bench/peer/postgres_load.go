package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Shape is how much of what Skein does with a commit Postgres does, in one statement.
type Shape string

// The shapes, each with what the one before it does.
const (
	Rows      Shape = "rows"                       // a row an event, with a version check
	Documents Shape = "rows and documents"         // a row a document, inserted or updated
	Notify    Shape = "rows, documents and NOTIFY" // a notification with the thread
)

// Shapes returns all of them.
func Shapes() []Shape { return []Shape{Rows, Documents, Notify} }

// The primary key of an event is the version check: a writer that expected an older version
// collides with what was stored since.
const postgresTables = `
DROP TABLE IF EXISTS events, documents;
CREATE TABLE events (thread text, version bigint, type text NOT NULL, body bytea NOT NULL, PRIMARY KEY (thread, version));
CREATE TABLE documents (model text, key text, body bytea NOT NULL, PRIMARY KEY (model, key));
`

const (
	postgresEvents = `INSERT INTO events SELECT $1::text, $2::bigint + n - 1, type, body
FROM unnest($3::text[], $4::bytea[]) WITH ORDINALITY AS e(type, body, n)`
	postgresDocuments = `INSERT INTO documents SELECT * FROM unnest($5::text[], $6::text[], $7::bytea[])
ON CONFLICT (model, key) DO UPDATE SET body = EXCLUDED.body`
)

// statement returns what stores a commit.
func (s Shape) statement() string {
	switch s {
	case Rows:
		return postgresEvents
	case Documents:
		return "WITH stored AS (" + postgresEvents + ") " + postgresDocuments
	default:
		return "WITH stored AS (" + postgresEvents + "), shown AS (" + postgresDocuments + ") SELECT pg_notify('commits', $1::text)"
	}
}

// connections is how many a Postgres of a few processors is fastest with; more clients share them.
const connections = 64

// PostgresWork is what clients do with a Postgres.
type PostgresWork struct {
	Work
	DSN   string `json:"dsn"`
	Shape Shape  `json:"shape"`
}

// Prepare creates empty tables.
func (w PostgresWork) Prepare(ctx context.Context) error {
	return w.with(ctx, func(conn *pgx.Conn) error {
		for _, statement := range strings.SplitAfter(strings.TrimSpace(postgresTables), "\n") {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("postgres: %w", err)
			}
		}
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}

// Check returns an error if not all of so many commits are stored.
func (w PostgresWork) Check(ctx context.Context, commits int) error {
	return w.with(ctx, func(conn *pgx.Conn) error {
		var events, documents int
		if err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM documents)").Scan(&events, &documents); err != nil {
			return err
		}
		if want := commits * len(w.Turn.Events); events != want || (documents > 0) != (w.Shape != Rows && commits > 0) {
			return fmt.Errorf("postgres, %s: %d events and %d documents after %d commits, want %d events", w.Shape, events, documents, commits, want)
		}
		return nil
	})
}

func (w PostgresWork) with(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, w.DSN)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(ctx))
}

// Run does the work, and returns how long each commit took and all together.
func (w PostgresWork) Run(ctx context.Context) (nanos []int64, elapsed time.Duration, err error) {
	config, err := pgxpool.ParseConfig(w.DSN)
	if err != nil {
		return nil, 0, err
	}
	config.MaxConns = int32(min(w.Clients, connections))
	config.MinConns = config.MaxConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, 0, err
	}
	defer pool.Close()
	write := w.writer(pool)
	start := time.Now()
	nanos, err = w.run(ctx, write)
	return nanos, time.Since(start), err
}

// writer returns a function that stores a turn of a thread, whose first event has a version.
func (w PostgresWork) writer(pool *pgxpool.Pool) func(ctx context.Context, thread, nonce string, version int64) error {
	types, bodies := columns(w.Turn.Events)
	models, documents := columns(w.Turn.Documents)
	statement := w.Shape.statement()
	return func(ctx context.Context, thread, nonce string, version int64) error {
		args := []any{thread, version, types, bodies}
		if w.Shape != Rows {
			args = append(args, models, w.Turn.keys(thread, nonce), documents)
		}
		_, err := pool.Exec(ctx, statement, args...)
		return err
	}
}

// columns returns the kinds and the bodies of rows.
func columns(rows []Row) (kinds []string, bodies [][]byte) {
	for _, r := range rows {
		kinds, bodies = append(kinds, r.Kind), append(bodies, []byte(r.Body))
	}
	return kinds, bodies
}

// nonce returns the nonce of the nth turn of a client.
func nonce(client, n int) string { return fmt.Sprintf("%08x%024x", client, n) }
