package client

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/events"
)

// SQL returns a Projector for projections in a database: Postgres, SQLite, MySQL, and others that know
// CREATE TABLE IF NOT EXISTS. The positions are in the table skein_projections, which it creates:
//
//	CREATE TABLE skein_projections (name varchar(64) PRIMARY KEY, position varchar(128) NOT NULL)
//
// Names of projections have 1 to 64 letters, digits, _ and -.
func SQL(db *sql.DB) Projector[*sql.Tx] { return database{db} }

type database struct{ db *sql.DB }

// Names and positions consist of letters, digits, dots, _ and -, and are checked: so statements quote
// them as they are, and need none of the placeholders, of which each database has its own.
const (
	createPositions = `CREATE TABLE IF NOT EXISTS skein_projections (name varchar(64) PRIMARY KEY, position varchar(128) NOT NULL)`
	selectPosition  = `SELECT position FROM skein_projections WHERE name = '%s'`
	insertPosition  = `INSERT INTO skein_projections (name, position) VALUES ('%s', '%s')`
	movePosition    = `UPDATE skein_projections SET position = '%s' WHERE name = '%s' AND position = '%s'`
)

// Position implements [Projector]. A projection that has no row gets one.
func (d database) Position(ctx context.Context, projection string) (events.Position, error) {
	if !events.Pattern(events.PatternName).MatchString(projection) {
		return events.Position{}, events.Invalid("", "%.80q is not the name of a projection: use 1 to 64 letters, digits, _ and -", projection)
	}
	text, err := d.position(ctx, projection)
	if err != nil { // no row, or no table; another process may make them now, and then these fail
		_, create := d.db.ExecContext(ctx, createPositions)
		_, insert := d.db.ExecContext(ctx, fmt.Sprintf(insertPosition, projection, events.Position{}))
		if text, err = d.position(ctx, projection); err != nil {
			return events.Position{}, fmt.Errorf("read the position of the projection %s: %w", projection, errors.Join(err, create, insert))
		}
	}
	at, ok := events.ParsePosition(text)
	if !ok {
		return at, fmt.Errorf("the position of the projection %s in skein_projections is %.80q, which is none", projection, text)
	}
	return at, nil
}

func (d database) position(ctx context.Context, projection string) (text string, err error) {
	err = d.db.QueryRowContext(ctx, fmt.Sprintf(selectPosition, projection)).Scan(&text)
	return text, err
}

// Update implements [Projector].
func (d database) Update(ctx context.Context, projection string, from, to events.Position, apply func(*sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	moved, err := tx.ExecContext(ctx, fmt.Sprintf(movePosition, to, projection, from))
	if err != nil {
		return fmt.Errorf("move the projection %s: %w", projection, err)
	}
	if n, err := moved.RowsAffected(); err != nil {
		return fmt.Errorf("move the projection %s: %w", projection, err)
	} else if n != 1 {
		return ErrMoved
	}
	if err := apply(tx); err != nil {
		return err
	}
	return tx.Commit()
}
