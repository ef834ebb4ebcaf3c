package edge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// guard holds a client to what its principal may do. It implements client.Guard.
type guard struct {
	names events.Names
	who   Principal
	marks *marks
	fresh bool // queries show all that this edge has acknowledged to the tenant, not only of a thread that they name

	reach   *reach // nil if the principal may use all threads
	decoded func() // called when a request was decoded, and only waits from then on
	done    func() // called when a command was answered

	follows func(context.Context) error // waits until a subscription may begin
}

// fields is a JSON object whose values are not decoded.
type fields map[string]jsontext.Value

// Command decides on a command, a submitted command, or an upload, and notes what was acknowledged.
func (g *guard) Command(ctx context.Context, subject string, r *events.Request, send func() (*events.Reply, error)) (*events.Reply, error) {
	kind, name, err := g.parse(subject)
	if err != nil {
		return nil, err
	}
	switch {
	case kind == events.KindQuery || kind == events.KindFile && name != "content.put": // the others are no commands
		return nil, g.unsent(subject)
	case kind == events.KindFile: // it takes the very request of the command
		name = "file.write"
	}
	switch r.Actor {
	case "":
		r.Actor = g.who.Subject
	case g.who.Subject:
	default:
		return nil, events.Invalid("/actor", "the actor of a command is the credential's, %s; leave the field out", g.who.Subject)
	}
	if limits := g.who.rights(); limits != nil {
		r.Rights = limits
	}
	g.decoded()
	if g.reach != nil {
		if err := g.reach.command(ctx, name, r); err != nil {
			return nil, err
		}
	}
	if name == commitCommand {
		if err := g.approves(r); err != nil {
			return nil, err
		}
	}
	reply, err := send()
	g.done()
	if err != nil || reply == nil {
		return nil, err
	}
	g.marks.note(g.who.Tenant, reply.ThreadID, reply.Seq)
	if reply.Result != nil && reply.Result.ChildID != "" {
		g.marks.note(g.who.Tenant, reply.Result.ChildID, reply.Seq)
	}
	if g.reach == nil {
		return reply, nil
	}
	switch row, _ := events.LookupCommand(name); {
	case row.Relates.Finds != "": // another may have made it since
		if _, err := g.reach.thread(ctx, reply.ThreadID); err != nil {
			return nil, err
		}
	case row.Creates && r.ThreadID == "": // it may be a repeat of another's, who had the same id for it
		if err := g.reach.made(ctx, reply.ThreadID, reply.Seq, r.CommandID); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

// Request decides on a query, or a request for the bytes of a file.
func (g *guard) Request(ctx context.Context, subject string, body []byte, send func([]byte) ([]byte, error)) ([]byte, error) {
	kind, name, err := g.parse(subject)
	if err != nil {
		return nil, err
	}
	switch {
	case kind == events.KindQuery:
		return g.query(ctx, name, body, send)
	case kind == events.KindFile && name == "content.get":
		return g.content(ctx, body, send)
	case kind == events.KindFile && name == client.EmbedRequest: // of no thread; it needs what a command needs
		g.decoded()
		return send(body)
	}
	return nil, g.unsent(subject)
}

// parse returns the command or query of a request on a subject, or a refusal if the principal may
// not send it.
func (g *guard) parse(subject string) (kind, name string, err error) {
	kind, _, name, ok := g.names.ParseRequest(subject)
	if !ok {
		return "", "", g.unsent(subject)
	}
	return kind, name, g.permits(subject, capabilityOf(kind, name))
}

func (g *guard) unsent(subject string) error {
	return events.Errorf(events.Forbidden, "the edge sends nothing on %s", subject)
}

// Publish decides on a live event, or a piece of an upload.
func (g *guard) Publish(ctx context.Context, subject string) error {
	if err := g.permits(subject, Write); err != nil {
		return err
	}
	if thread, ok := g.liveThread(subject); ok {
		return g.within(ctx, thread)
	}
	return nil
}

// Subscribe decides on a subscription. Messages of threads that the principal may not use
// are held back by Receive.
func (g *guard) Subscribe(ctx context.Context, subject string) error {
	if strings.HasPrefix(subject, "_INBOX.") { // the client's own, for the answers to an upload
		return nil
	}
	if !g.may(Read) || !g.covers(subject, false) {
		return events.Errorf(events.Forbidden, "the credential does not permit to follow %s; it needs the role subscriber", subject)
	}
	if thread := g.threadOf(subject); thread != "*" {
		if err := g.within(ctx, thread); err != nil {
			return err
		}
	}
	return g.follows(ctx)
}

// Receive reports whether the principal may use the thread of a message.
func (g *guard) Receive(ctx context.Context, subject string) (bool, error) {
	if g.reach == nil {
		return true, nil
	}
	return g.reach.shows(ctx, g.threadOf(subject))
}

// Deliver notes what the client is shown: what it reads next shows that too.
func (g *guard) Deliver(thread string, seq int64) { g.marks.note(g.who.Tenant, thread, seq) }

// permits returns a forbidden unless the roles cover the subject, and the capabilities what
// is done.
func (g *guard) permits(subject string, what Capability) error {
	if !g.covers(subject, true) {
		return events.Errorf(events.Forbidden, "the credential does not permit this; it has the roles %s", strings.Join(g.who.Roles, ", "))
	}
	if !g.may(what) {
		return events.Errorf(events.Forbidden, "the credential does not permit to %s", what)
	}
	return nil
}

func (g *guard) may(what Capability) bool {
	return len(g.who.Can) == 0 || slices.Contains(g.who.Can, what)
}

// covers reports whether a role of the principal may publish on a subject, or subscribe to it.
func (g *guard) covers(subject string, publish bool) bool {
	for _, role := range g.who.Roles {
		patterns, follows := events.TenantRole(role).Subjects(g.names, g.who.Tenant)
		if !publish {
			patterns = follows
		}
		if slices.ContainsFunc(patterns, func(p string) bool { return events.Covers(p, subject) }) {
			return true
		}
	}
	return false
}

// capabilityOf returns what a principal must be capable of to send a request.
func capabilityOf(kind, name string) Capability {
	switch {
	case kind == "query" || kind == "file" && name == "content.get":
		return Read
	case strings.HasPrefix(name, "approval."):
		return Approve
	case strings.HasPrefix(name, "definition."):
		return Define
	default:
		return Write
	}
}

// threadOf returns the thread in a subject of the timeline or of live events.
func (g *guard) threadOf(subject string) string {
	if _, thread, _, ok := g.names.ParseTimeline(subject); ok {
		return thread
	}
	thread, _ := g.liveThread(subject)
	return thread
}

func (g *guard) liveThread(subject string) (string, bool) {
	rest, ok := strings.CutPrefix(subject, g.names.Prefix+".live."+g.who.Tenant+".")
	thread, _, _ := strings.Cut(rest, ".")
	return thread, ok
}

// within returns a not_found unless the principal may use the thread.
func (g *guard) within(ctx context.Context, thread string) error {
	if g.reach == nil {
		return nil
	}
	_, err := g.reach.thread(ctx, thread)
	return err
}

// content decides on a request for the bytes of a file.
func (g *guard) content(ctx context.Context, body []byte, send func([]byte) ([]byte, error)) ([]byte, error) {
	g.decoded()
	if g.reach != nil {
		request, err := decodeFields(body)
		if err == nil {
			err = g.reach.field(ctx, request, "threadId")
		}
		if err != nil {
			return nil, err
		}
		body = encodeFields(request)
	}
	return send(body)
}

// approves returns a forbidden if a thread.commit has a command that the principal is not
// capable of.
func (g *guard) approves(r *events.Request) error {
	if len(g.who.Can) == 0 {
		return nil
	}
	var commit events.CommitThread
	if err := json.Unmarshal(r.Data, &commit); err != nil {
		return events.Invalid("/data", "it is not the data of thread.commit: %w", err)
	}
	for _, c := range commit.Commands {
		if what := capabilityOf("cmd", c.Command); !g.may(what) {
			return events.Errorf(events.Forbidden, "the credential does not permit to %s, as %s does", what, c.Command)
		}
	}
	return nil
}

// query decides on a query. What a page of events has shown, the client's next queries show too.
func (g *guard) query(ctx context.Context, name string, body []byte, send func([]byte) ([]byte, error)) ([]byte, error) {
	g.decoded()
	answer, err := g.ask(ctx, name, body, send)
	if err == nil && name == eventList {
		g.notePage(body, answer)
	}
	return answer, err
}

// eventList is the query for the events of a thread.
const eventList = "event.list"

// notePage notes how far a page of events goes.
func (g *guard) notePage(body, page []byte) {
	var of struct {
		ThreadID string `json:"threadId"`
	}
	var to struct {
		Seq int64 `json:"seq"`
	}
	if json.Unmarshal(body, &of) == nil && json.Unmarshal(page, &to) == nil {
		g.Deliver(of.ThreadID, to.Seq)
	}
}

// ask sends a query that may be sent.
func (g *guard) ask(ctx context.Context, name string, body []byte, send func([]byte) ([]byte, error)) ([]byte, error) {
	row, known := events.LookupQuery(name)
	marked := known && row.Waits() && g.marks.of(g.who.Tenant) > 0
	if g.reach == nil && !marked || !known {
		return send(body)
	}
	request, err := decodeFields(body)
	if err != nil {
		return nil, err
	}
	if mark := g.mark(request); marked && mark > 0 {
		var least int64
		if raw, set := request["minSeq"]; !set || json.Unmarshal(raw, &least) == nil && least >= 0 && least < mark {
			request["minSeq"], _ = json.Marshal(mark)
		}
	}
	if g.reach == nil {
		return send(encodeFields(request))
	}
	return g.reach.query(ctx, row, request, send)
}

// mark returns the sequence that the answer to a query must show at least.
func (g *guard) mark(request fields) int64 {
	if g.fresh {
		return g.marks.of(g.who.Tenant)
	}
	thread, _ := text(request, "threadId")
	return g.marks.ofThread(g.who.Tenant, thread)
}

// decodeFields decodes an object, null or nothing. The values are parts of the body.
func decodeFields(body []byte) (fields, error) {
	f := fields{}
	if len(body) == 0 {
		return f, nil
	}
	if err := f.read(jsontext.NewDecoder(bytes.NewBuffer(body))); err != nil {
		return nil, events.Invalid("", "the body is not a JSON object: %w", err)
	}
	return f, nil
}

// errNoObject says that a body is another value than an object.
var errNoObject = errors.New("it is another value")

// read adds the members of the one object that a decoder reads. The decoder reads from a
// bytes.Buffer, of whose bytes it returns parts.
func (f fields) read(d *jsontext.Decoder) error {
	opens, err := d.ReadToken()
	if err != nil {
		return err
	}
	kind := opens.Kind()
	if kind != '{' && kind != 'n' {
		return errNoObject
	}
	for kind == '{' && d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		of := name.String() // before the next read
		if f[of], err = d.ReadValue(); err != nil {
			return err
		}
	}
	if kind == '{' {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return cmp.Or(err, errNoObject)
	}
	return nil
}

// encodeFields returns an object of fields, sorted by their names.
func encodeFields(f fields) []byte {
	size := 2
	for name, value := range f {
		size += len(name) + len(value) + 4 // more, if something of the name is escaped
	}
	body := append(make([]byte, 0, size), '{')
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(body, quoted(name)...), ':')
		body = append(body, f[name]...)
	}
	return append(body, '}')
}

// text returns a field that is a text, and reports whether it is set.
func text(f fields, name string) (string, bool) {
	raw, ok := f[name]
	var s string
	if !ok || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, s != ""
}

func quoted(s string) jsontext.Value {
	raw, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return jsontext.Value(`""`)
	}
	return raw
}

var _ client.Guard = (*guard)(nil)
