package commands

import (
	"math"
	"strconv"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// admit decodes and validates the body of a request. It stamps the command with a time, and with ids where the
// caller set none.
func (d *Dispatcher) admit(tenant, name string, body []byte, meta Meta) (*thread.Command, error) {
	return d.admitRequest(tenant, name, len(body), func() (events.Request, error) { return d.schema.DecodeRequest(body) }, meta)
}

// admitRequest is admit for a request that read returns. size is its size in bytes.
func (d *Dispatcher) admitRequest(tenant, name string, size int, read func() (events.Request, error), meta Meta) (*thread.Command, error) {
	if err := events.CheckTenant("", tenant); err != nil {
		return nil, err
	}
	row, ok := events.LookupCommand(name)
	if !ok {
		return nil, events.Errorf(events.NotFound, "no such command: %.64s; see docs/commands.md", name)
	}
	if size > events.MaxPayload {
		return nil, events.TooLarge("the request", int64(size), events.MaxPayload)
	}
	req, err := read()
	if err != nil {
		return nil, err
	}
	c := &thread.Command{
		ID: req.CommandID, Tenant: tenant, ThreadID: req.ThreadID, Time: events.TimeOf(d.cfg.Now()),
		Actor: req.Actor, Rights: req.Rights, Writer: req.WriterToken, Expected: req.ExpectedVersion, Trace: cleanTrace(meta.TraceParent), Cause: meta.Cause,
	}
	if err := d.parts(c, row, req.Data); err != nil {
		return nil, err
	}
	if c.ID != "" {
		c.Digest = events.CommandDigest(row.Name, req.Data)
	}
	if row.Tenant {
		if c.ThreadID != "" {
			return nil, events.Invalid("/threadId", "%s is of the tenant, and takes no threadId", name)
		}
		c.ThreadID = events.TenantAggregate
	}
	if c.ThreadID == "" {
		if !c.Creates() {
			return nil, events.Invalid("/threadId", "%s needs a threadId", name)
		}
		if c.ID != "" {
			c.ThreadID = events.DeriveThreadID(tenant, c.ID)
		} else {
			c.ThreadID = "T-" + uuid.Must(uuid.NewV7()).String()
		}
	} else if _, key := events.ThreadRef(c.ThreadID); key != "" && c.Creates() {
		return nil, events.Invalid("/threadId", "a new thread's threadId is an id; give its key in data")
	}
	if c.ID == "" {
		c.ID = newCommandID()
	}
	return c, nil
}

// parts decodes the command's part, or the parts of a thread.commit.
func (d *Dispatcher) parts(c *thread.Command, row events.Command, data events.JSON) error {
	if most := mostData(row); len(data) > most {
		return events.TooLarge("the command's data", int64(len(data)), int64(most))
	}
	v, err := d.schema.DecodeTrusted(row.Name, data)
	if err != nil {
		return schema.Under("/data", err)
	}
	if apply, ok := v.(events.ApplyDefinitions); ok {
		if v, err = d.schema.Definitions(apply); err != nil {
			return schema.Under("/data", err)
		}
	}
	batch, ok := v.(events.CommitThread)
	if !ok {
		c.Parts = []thread.Part{{Name: row.Name, Data: v}}
		return nil
	}
	c.Batch = true
	c.Parts = make([]thread.Part, len(batch.Commands))
	for i, sub := range batch.Commands {
		path := "/data/commands/" + strconv.Itoa(i)
		row, ok := events.LookupCommand(sub.Command)
		switch {
		case !ok:
			return events.Invalid(path+"/command", "no such command: %.64s", sub.Command)
		case row.Single:
			return events.Invalid(path+"/command", "%s cannot stand in a thread.commit", sub.Command)
		case (row.Creates || row.First) && i > 0:
			return events.Invalid(path+"/command", "%s must be the first command", sub.Command)
		case len(sub.Data) > mostData(row):
			large := events.TooLarge("the data of command "+strconv.Itoa(i), int64(len(sub.Data)), int64(mostData(row)))
			large.Details.Command = &i
			return large
		}
		v, err := d.schema.DecodeTrusted(sub.Command, sub.Data)
		if err != nil {
			return schema.Under(path+"/data", err)
		}
		c.Parts[i] = thread.Part{Name: sub.Command, Data: v}
	}
	return nil
}

// mostData returns how many bytes the data of a command may have. Commands that contain other
// commands, or values with a limit of their own, may fill a message.
func mostData(row events.Command) int {
	switch row.Name {
	case "thread.commit", "definition.apply", "kv.set":
		return math.MaxInt
	case "state.merge", "context.set":
		return events.MaxMergeBytes
	}
	return events.MaxEventBytes
}

// cleanTrace returns trace if it has the form of a W3C trace context, otherwise "".
func cleanTrace(trace string) string {
	if len(trace) != 55 {
		return ""
	}
	for _, c := range trace {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && c != '-' {
			return ""
		}
	}
	return trace
}
