package eventlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Config says how the log's streams are to be made. The zero value of a field
// means its default.
type Config struct {
	Names       events.Names     // default: prefix skein
	API         string           // prefix of JetStream's API; default $JS.API; another one where an account sees it under a domain
	Replicas    int              // copies of every stream; default 1
	Embedded    bool             // the server is in this process, which checks its files before it starts (operator/store)
	TimelineAge time.Duration    // how long the timeline keeps an event; default 7 days
	ChunkAge    time.Duration    // how long a chunk of an execution's stream is kept; default 1 hour
	CommandAge  time.Duration    // how long a submitted command may wait; default 7 days
	AckTimeout  time.Duration    // how long an append waits for its acknowledgement before it is looked up; default 5 s
	Recent      *Recent          // shared by the logs of one process; default none
	Floors      *streams.Floors  // shared by the logs of one process; default the log's own
	Writing     *streams.Writing // shared by the logs of one process; default the log's own
	Outage      *Outage          // shared by the logs of one process; default one that never begins
	// Damage says why messages of a range of sequences cannot be read, if that is
	// known. It is asked when a read was not answered or found nothing. Default: it is
	// never known.
	Damage func(stream string, from, to uint64) error

	// Patience is how long a read is retried that the server does not answer, or that a
	// lagging replica answers: for callers that would rather wait than report what is not
	// so, such as an audit. Default: a read is tried once, for 5 s.
	Patience time.Duration

	QueueCommits int // how many commits may wait for the appender; default 8192
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	if c.Names.Prefix == "" {
		c.Names = events.DefaultNames()
	}
	if c.API == "" {
		c.API = streams.OwnAPI
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.TimelineAge == 0 {
		c.TimelineAge = 7 * 24 * time.Hour
	}
	if c.ChunkAge == 0 {
		c.ChunkAge = time.Hour
	}
	if c.CommandAge == 0 {
		c.CommandAge = 7 * 24 * time.Hour
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = 5 * time.Second
	}
	if c.Floors == nil {
		c.Floors = &streams.Floors{}
	}
	if c.Writing == nil {
		c.Writing = &streams.Writing{}
	}
	if c.Outage == nil {
		c.Outage = NewOutage()
	}
	if c.Damage == nil {
		c.Damage = func(string, uint64, uint64) error { return nil }
	}
	if c.QueueCommits == 0 {
		c.QueueCommits = 8192
	}
	return c
}

// streams returns what the connection to the streams is told.
func (c Config) streams() streams.Config {
	return streams.Config{
		Names: c.Names, API: c.API, Replicas: c.Replicas, Embedded: c.Embedded, Sample: c.Names.Stream(assets.LogStream), AckTimeout: c.AckTimeout,
		Patience: c.Patience, Floors: c.Floors, Writing: c.Writing, Damage: c.Damage,
	}
}

// Validate reports everything that is wrong with the configuration, at once.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	if err := c.Names.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5 {
		errs = append(errs, fmt.Errorf("replicas (--replicas): %d; 1, 3 or 5 are possible", c.Replicas))
	}
	if c.TimelineAge < time.Minute {
		errs = append(errs, fmt.Errorf("timeline age: %v; at least a minute is needed", c.TimelineAge))
	}
	if c.ChunkAge < time.Second {
		errs = append(errs, fmt.Errorf("chunk age: %v; at least a second is needed", c.ChunkAge))
	}
	return errors.Join(errs...)
}
