// Command titles keeps a table of Postgres with the title of each thread of a tenant.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func main() {
	ctx := context.Background()
	skein, err := client.Connect(cmp.Or(os.Getenv("SKEIN_SERVER"), "nats://127.0.0.1:4222"), client.Options{Tenant: cmp.Or(os.Getenv("SKEIN_TENANT"), "acme")})
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err == nil {
		_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS titles (thread text PRIMARY KEY, title text NOT NULL)`)
	}
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(client.Project(ctx, skein, "titles", client.SQL(db), client.SubscribeOptions{}, func(ctx context.Context, tx *sql.Tx, e client.Event) (err error) {
		switch d := e.Data.(type) {
		case events.ThreadCreated:
			_, err = tx.ExecContext(ctx, `INSERT INTO titles VALUES ($1, $2)`, e.ThreadID, d.Title)
		case events.ProfileChanged:
			if d.Title != nil {
				_, err = tx.ExecContext(ctx, `UPDATE titles SET title = $2 WHERE thread = $1`, e.ThreadID, *d.Title)
			}
		case events.LifecycleDeleted:
			_, err = tx.ExecContext(ctx, `DELETE FROM titles WHERE thread = $1`, e.ThreadID)
		}
		return err
	}))
}
