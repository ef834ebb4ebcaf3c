package rest

import (
	"context"
	"net/http"

	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// headerLog is the header with the log that positions are of: of an answer, and of a request's position.
const headerLog = "Skein-Log"

// lastSeen returns the id of the event that a reader has seen last, as the header says or else the
// parameter from, and the name of the one that does; the name is empty if neither does.
func lastSeen(req *http.Request, parameters map[string]string) (name, id string) {
	if id = req.Header.Get(stream.HeaderLast); id != "" {
		return stream.HeaderLast, id
	}
	if id, given := parameters["from"]; given {
		return "from", id
	}
	return "", ""
}

func noSuchPlace(name, id string) error {
	return events.Invalid("/"+name, "%s is %.40q; it takes the id of the last event that was seen", name, id)
}

// position returns the number that follows what a reader has seen last; 0 and false if it does not
// say so.
func position(req *http.Request, parameters map[string]string) (next int64, given bool, err error) {
	name, id := lastSeen(req, parameters)
	if name == "" {
		return 0, false, nil
	}
	seen, ok := parseWhole(id)
	if !ok {
		return 0, false, noSuchPlace(name, id)
	}
	return seen + 1, true, nil
}

// tenantPosition returns the position of the last event that a reader of the tenant's events has
// seen, and reports whether the request names one.
func tenantPosition(req *http.Request, parameters map[string]string) (events.Position, bool, error) {
	log, err := namedLog(req, parameters)
	if err != nil {
		return events.Position{}, false, err
	}
	name, id := lastSeen(req, parameters)
	if name == "" {
		return events.Position{Log: log}, false, nil
	}
	p, ok := events.ParsePosition(id)
	if !ok {
		return events.Position{}, false, noSuchPlace(name, id)
	}
	if p.Log == "" {
		p.Log = log
	}
	return p, true, nil
}

// namedLog returns the log that a request's position is of, as the header says or else the
// parameter log; empty if neither does. An EventSource sends the parameter again when it reconnects.
func namedLog(req *http.Request, parameters map[string]string) (string, error) {
	name, log := headerLog, req.Header.Get(headerLog)
	if log == "" {
		name, log = "log", parameters["log"]
	}
	if log != "" && !events.ValidID(log) {
		return "", events.Invalid("/"+name, "%s is %.40q; it takes the name of a log, as the header %s of an answer has it", name, log, headerLog)
	}
	return log, nil
}

// checkChunk returns the log that there is. The error is a position_ahead if a query for chunks is of
// another one, or if the chunk before next was seen, and its run has not written it.
func checkChunk(ctx context.Context, c *client.Client, q events.ListChunks, next int64) (log string, err error) {
	end, err := client.Read(ctx, c, events.GetHistory{})
	if err == nil {
		err = events.CheckLog(q.Log, end.Log)
	}
	if err != nil {
		return "", err
	}
	if next > 0 && q.ExecutionID != "" {
		q.AfterIndex, q.Limit, q.Log = new(next-1), new(int64(1)), ""
		_, err = client.Read(ctx, c, q)
	}
	return end.Log, err
}
