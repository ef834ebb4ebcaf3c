// Command follow keeps tables of Postgres in step with the threads of a tenant.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// consumer is the name of the durable consumer. Use one for each set of tables.
const consumer = "tables"

type tables struct {
	skein *client.Client
	db    *pgx.Conn
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	skein, err := client.Connect(cmp.Or(os.Getenv("SKEIN_SERVER"), "nats://127.0.0.1:4222"), client.Options{Tenant: cmp.Or(os.Getenv("SKEIN_TENANT"), "acme")})
	if err != nil {
		return err
	}
	defer skein.Close()
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	t := tables{skein, db}
	for rebuild := slices.Contains(os.Args, "--rebuild"); ; rebuild = true {
		if rebuild {
			if err := t.clear(ctx); err != nil {
				return err
			}
		}
		if err := t.follow(ctx); !events.HasCode(err, events.PositionAhead) {
			return err
		} // the log was restored: its positions are other ones
	}
}

func (t tables) follow(ctx context.Context) error {
	start, err := t.begin(ctx)
	if err != nil {
		return err
	}
	return t.skein.ConsumeBatches(ctx, consumer, client.Filter{From: client.At(start)}, 100, func(ctx context.Context, b client.Batch) error {
		if b.Gap {
			if err := t.readLog(ctx); err != nil {
				return err
			}
		}
		return t.apply(ctx, b.Events)
	})
}

// begin returns where the consumer begins: at the commit after the snapshot.
func (t tables) begin(ctx context.Context) (start events.Position, err error) {
	err = t.db.QueryRow(ctx, `SELECT start, log FROM position`).Scan(&start.Seq, &start.Log)
	if !errors.Is(err, pgx.ErrNoRows) {
		return start, err
	}
	end, err := client.Read(ctx, t.skein, events.GetHistory{})
	if err != nil {
		return start, err
	}
	start = events.Position{Seq: end.LastSeq + 1, Log: end.Log}
	return start, pgx.BeginFunc(ctx, t.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO position (start, seq, log) VALUES ($1, $2, $3)`, start.Seq, end.LastSeq, end.Log); err != nil {
			return err
		}
		for _, archived := range []bool{false, true} {
			for page := (events.ListThreads{Archived: &archived, Fresh: events.Fresh{MinSeq: &end.LastSeq}}); ; {
				list, err := client.Read(ctx, t.skein, page)
				if err != nil {
					return err
				}
				for _, thread := range list.Threads {
					if err := put(ctx, tx, &thread); err != nil {
						return err
					}
				}
				if page.Cursor = list.NextCursor; page.Cursor == "" {
					break
				}
			}
		}
		return nil
	})
}

// put writes the row of a thread, unless the table has a later version of it.
func put(ctx context.Context, tx pgx.Tx, thread *events.Thread) error {
	_, err := tx.Exec(ctx, `INSERT INTO threads (id, title, status, items, version) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, status = excluded.status, items = excluded.items, version = excluded.version
		WHERE threads.version < excluded.version`, thread.ID, thread.Title, string(thread.Status), thread.Items, thread.Version)
	return err
}

// apply applies events in one transaction. What was applied before is skipped.
func (t tables) apply(ctx context.Context, list []client.Event) error {
	return pgx.BeginFunc(ctx, t.db, func(tx pgx.Tx) error {
		changed := map[string]int64{} // versions of threads
		for _, e := range list {
			added, err := tx.Exec(ctx, `INSERT INTO changes (event, seq, thread, version, type, at) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (event) DO NOTHING`, e.ID, e.Seq, e.ThreadID, e.Version, string(e.Type), e.Time.String())
			if err != nil {
				return err
			}
			if added.RowsAffected() > 0 && events.IsThread(e.ThreadID) {
				changed[e.ThreadID] = e.Version
			}
			if _, err := tx.Exec(ctx, `UPDATE position SET seq = greatest(seq, $1)`, e.Seq); err != nil {
				return err
			}
		}
		for id, version := range changed {
			thread, err := client.Read(ctx, t.skein, events.GetThread{ThreadID: id, Fresh: events.Fresh{MinVersion: &version}})
			if events.IsNotFound(err) {
				_, err = tx.Exec(ctx, `DELETE FROM threads WHERE id = $1`, id)
			} else if err == nil {
				err = put(ctx, tx, thread)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// readLog applies what the log has after what is applied. Its first commit may be applied in part.
func (t tables) readLog(ctx context.Context) error {
	var from events.Position
	if err := t.db.QueryRow(ctx, `SELECT seq, log FROM position`).Scan(&from.Seq, &from.Log); err != nil {
		return err
	}
	line, err := t.skein.Timeline(ctx, client.SubscribeOptions{From: client.At(from), Aggregates: true, History: true})
	if err != nil {
		return err
	}
	defer line.Close()
	for e, err := range line.All(ctx) {
		if err == nil {
			err = t.apply(ctx, []client.Event{e})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clear empties the tables, so that they begin with a new snapshot.
func (t tables) clear(ctx context.Context) error {
	if _, err := client.Read(ctx, t.skein, events.DeleteConsumer{Name: consumer}); err != nil {
		return err
	}
	_, err := t.db.Exec(ctx, `TRUNCATE threads, changes, position`)
	return err
}
