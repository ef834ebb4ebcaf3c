package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// confServer runs a server with the nats.conf of the project, on a free port
// and on the given store.
func confServer(t *testing.T, storeDir string) *server.Server {
	t.Helper()
	o := readConf(t)
	o.Port = server.RANDOM_PORT
	o.StoreDir = storeDir
	o.NoSigs, o.NoLog = true, true
	ns, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server with nats.conf is not ready")
	}
	return ns
}

func readConf(t *testing.T) *server.Options {
	t.Helper()
	for _, user := range []string{"publisher", "subscriber", "worker", "gateway", "auditor"} {
		t.Setenv("SKEIN_"+strings.ToUpper(user)+"_PASSWORD", user+"-secret")
	}
	t.Setenv("SKEIN_NATS_PASSWORD", "skein-secret")
	o, err := server.ProcessConfigFile(filepath.Join("..", "..", "nats.conf"))
	if err != nil {
		t.Fatalf("nats.conf: %v", err)
	}
	return o
}

// connectAs connects as a user of nats.conf; refusals arrive in the channel.
func connectAs(t *testing.T, ns *server.Server, user string) (*nats.Conn, <-chan error) {
	t.Helper()
	refusals := make(chan error, 16)
	nc, err := nats.Connect(ns.ClientURL(), nats.UserInfo(user, user+"-secret"), nats.CustomInboxPrefix("_INBOX."+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		t.Fatalf("connect as %s: %v", user, err)
	}
	t.Cleanup(nc.Close)
	return nc, refusals
}

func wantRefusal(t *testing.T, refusals <-chan error, what string) {
	t.Helper()
	select {
	case err := <-refusals:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: got %v, want a permissions violation", what, err)
		}
	case <-time.After(time.Minute):
		t.Errorf("%s was not refused", what)
	}
}

func TestConfEqualsEmbedded(t *testing.T) {
	conf := readConf(t)
	o := NewOptions("./skein-data")
	emb, err := o.serverOptions()
	if err != nil {
		t.Fatal(err)
	}
	type effect struct {
		name, host, storeDir  string
		port                  int
		maxPayload            int32
		jetStream, syncAlways bool
		pingInterval          time.Duration
		pingsOut              int
	}
	of := func(o *server.Options) effect {
		return effect{o.ServerName, o.Host, o.StoreDir, o.Port, o.MaxPayload, o.JetStream, o.SyncAlways, o.PingInterval, o.MaxPingsOut}
	}
	if of(conf) != of(emb) {
		t.Errorf("nats.conf and the embedded server differ:\nnats.conf %+v\nembedded  %+v", of(conf), of(emb))
	}
}

func TestConfNeedsItsPasswords(t *testing.T) {
	readConf(t)
	t.Setenv("SKEIN_NATS_PASSWORD", "") // Registers the restore; then it is really absent.
	os.Unsetenv("SKEIN_NATS_PASSWORD")
	_, err := server.ProcessConfigFile(filepath.Join("..", "..", "nats.conf"))
	if err == nil || !strings.Contains(err.Error(), "SKEIN_NATS_PASSWORD") {
		t.Errorf("got %v, want an error that names SKEIN_NATS_PASSWORD", err)
	}
}

func TestConfRefusesStrangers(t *testing.T) {
	ns := confServer(t, t.TempDir())
	if _, err := nats.Connect(ns.ClientURL()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without a user: got %v, want %v", err, nats.ErrAuthorization)
	}
	if _, err := nats.Connect(ns.ClientURL(), nats.UserInfo("skein", "wrong")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with a wrong password: got %v, want %v", err, nats.ErrAuthorization)
	}
}

func TestConfPublisher(t *testing.T) {
	ns := confServer(t, t.TempDir())
	skein, _ := connectAs(t, ns, "skein")
	publisher, refusals := connectAs(t, ns, "publisher")

	// Commands and queries are answered, headers included.
	for _, kind := range []string{"cmd", "query"} {
		if _, err := skein.QueueSubscribe("skein."+kind+".>", "skein", func(m *nats.Msg) {
			reply := nats.NewMsg(m.Reply)
			reply.Header.Set("Nats-Service-Error-Code", "409")
			reply.Data = []byte(m.Subject)
			_ = m.RespondMsg(reply)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := skein.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"skein.cmd.acme.thread.create", "skein.query.acme.thread.get"} {
		reply, err := publisher.Request(subject, nil, time.Minute)
		if err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		if string(reply.Data) != subject || reply.Header.Get("Nats-Service-Error-Code") != "409" {
			t.Errorf("%s: got %q with %v", subject, reply.Data, reply.Header)
		}
	}

	// A submitted command is stored, and acknowledged if the publisher asks.
	js, err := jetstream.New(skein)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SKEIN_COMMANDS", Subjects: []string{"skein.submit.>"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publisher.Request("skein.submit.acme.thread.create", []byte("{}"), time.Minute); err != nil {
		t.Fatalf("skein.submit.acme: %v", err)
	}
	if info, err := stream.Info(t.Context()); err != nil || info.State.Msgs != 1 {
		t.Errorf("the submitted command is not in the stream: %v", err)
	}

	// The log, other tenants and JetStream are out of reach.
	for _, subject := range []string{
		"skein.log.acme.T-x", "skein.timeline.acme.T-x.item.created", "skein.cmd.globex.thread.create",
		"$JS.API.STREAM.DELETE.SKEIN_COMMANDS", "$SRV.PING",
	} {
		if err := publisher.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, refusals, "publish on "+subject)
	}
	if _, err := publisher.SubscribeSync("skein.timeline.acme.>"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, refusals, "subscribe to the timeline")
}

func TestConfInboxesArePrivate(t *testing.T) {
	ns := confServer(t, t.TempDir())
	skein, _ := connectAs(t, ns, "skein")
	publisher, refusals := connectAs(t, ns, "publisher")
	for _, subject := range []string{"_INBOX.>", "_INBOX.subscriber.>"} {
		if _, err := publisher.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, refusals, "subscribe to "+subject)
	}
	everything, err := publisher.SubscribeSync("_INBOX.publisher.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := skein.Publish("_INBOX.publisher.else", []byte("another tenant's answer")); err != nil {
		t.Fatal(err)
	}
	if err := skein.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := publisher.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := everything.Pending(); err != nil || n != 0 {
		t.Errorf("the publisher sees %d replies meant for others (%v)", n, err)
	}
}

func TestConfSubscriber(t *testing.T) {
	ns := confServer(t, t.TempDir())
	skein, _ := connectAs(t, ns, "skein")
	subscriber, refusals := connectAs(t, ns, "subscriber")

	mine, err := subscriber.SubscribeSync("skein.timeline.acme.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := subscriber.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"globex", "acme"} {
		if err := skein.Publish("skein.timeline."+tenant+".T-x.item.created", []byte(tenant)); err != nil {
			t.Fatal(err)
		}
	}
	msg, err := mine.NextMsg(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if msg.Subject != "skein.timeline.acme.T-x.item.created" || string(msg.Data) != "acme" {
		t.Errorf("got %q on %s", msg.Data, msg.Subject)
	}

	for _, subject := range []string{"skein.timeline.globex.>", "skein.timeline.>", "skein.log.acme.>", "_INBOX.>", ">"} {
		if _, err := subscriber.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, refusals, "subscribe to "+subject)
	}
	for _, subject := range []string{"skein.cmd.acme.thread.create", "skein.submit.acme.thread.create", "skein.query.globex.thread.get"} {
		if err := subscriber.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, refusals, "publish on "+subject)
	}
}

func TestConfWorker(t *testing.T) {
	ns := confServer(t, t.TempDir())
	skein, _ := connectAs(t, ns, "skein")
	worker, refusals := connectAs(t, ns, "worker")
	for _, subject := range []string{"skein.reactor.shout", "skein.tool.add"} {
		if _, err := worker.QueueSubscribe(subject, "skein", func(m *nats.Msg) {
			_ = m.Respond([]byte("one"))
			_ = m.Respond([]byte("two"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, err := worker.SubscribeSync("skein.cancel.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Flush(); err != nil {
		t.Fatal(err)
	}
	inbox := skein.NewInbox()
	answers, err := skein.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"skein.reactor.shout", "skein.tool.add"} {
		if err := skein.PublishRequest(subject, inbox, nil); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"one", "two"} {
			if m, err := answers.NextMsg(time.Minute); err != nil || string(m.Data) != want {
				t.Fatalf("%s: %v, %v", subject, m, err)
			}
		}
	}
	if err := skein.Publish("skein.cancel.x", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := cancelled.NextMsg(time.Minute); err != nil {
		t.Error(err)
	}
	for _, subject := range []string{inbox, "skein.log.acme.T-x", "skein.cmd.acme.thread.create", "$JS.API.STREAM.NAMES"} {
		if err := worker.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, refusals, "publish on "+subject)
	}
	for _, subject := range []string{"skein.reactor.other", "skein.reactor.shout", "skein.timeline.acme.>"} { // the second without its queue group
		if _, err := worker.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, refusals, "subscribe to "+subject)
	}
}

func TestConfAuditor(t *testing.T) {
	ns := confServer(t, t.TempDir())
	skein, _ := connectAs(t, ns, "skein")
	auditor, refusals := connectAs(t, ns, "auditor")
	js, err := jetstream.New(skein)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SKEIN_LOG", Subjects: []string{"skein.log.>"}, AllowDirect: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "skein.log.acme.T-x", []byte("a commit")); err != nil {
		t.Fatal(err)
	}
	read, err := jetstream.NewWithDomain(auditor, "skein")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := read.Stream(t.Context(), "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := stream.GetMsg(t.Context(), 1); err != nil || string(m.Data) != "a commit" {
		t.Errorf("%v, %v", m, err)
	}
	// An answer that is aimed at the log does not get there.
	if err := auditor.PublishRequest("$JS.skein.API.DIRECT.GET.SKEIN_LOG.skein.log.acme.T-x", "skein.log.acme.T-y", nil); err != nil {
		t.Fatal(err)
	}
	if info, err := stream.Info(t.Context()); err != nil || info.State.LastSeq != 1 {
		t.Errorf("the auditor wrote to the log: %+v, %v", info, err)
	}
	for _, subject := range []string{"skein.log.acme.T-x", "$JS.skein.API.STREAM.DELETE.SKEIN_LOG", "$JS.API.STREAM.INFO.SKEIN_LOG", "skein.cmd.acme.thread.create"} {
		if err := auditor.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, refusals, "publish on "+subject)
	}
}

// Live events of a tenant reach its listeners once, whether Skein or one of its
// own programs sent them, and nobody else's do (SA-87).
func TestConfLiveEvents(t *testing.T) {
	ns := confServer(t, t.TempDir())
	skein, _ := connectAs(t, ns, "skein")
	publisher, _ := connectAs(t, ns, "publisher")
	subscriber, refusals := connectAs(t, ns, "subscriber")
	live, err := subscriber.SubscribeSync("skein.live.acme.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := subscriber.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, from := range []struct {
		nc      *nats.Conn
		subject string
	}{
		{skein, "skein.live.globex.T-x.progress"}, {skein, "skein.live.acme.T-x.progress"}, {publisher, "skein.live.acme.T-x.progress"}, {publisher, "skein.live.acme.T-x.last"},
	} {
		if err := from.nc.Publish(from.subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := from.nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"progress", "progress", "last"} {
		m, err := live.NextMsg(time.Minute)
		if err != nil || m.Subject != "skein.live.acme.T-x."+want {
			t.Fatalf("%+v, %v; want %s", m, err, want)
		}
	}
	if err := subscriber.Publish("skein.live.acme.T-x.progress", nil); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, refusals, "a live event of who may only listen")
}

// TestConfTakesOverAnEmbeddedStore holds nats.conf to what its comment says
// about a store that the embedded server made.
func TestConfTakesOverAnEmbeddedStore(t *testing.T) {
	dir := t.TempDir()
	o := NewOptions(dir)
	o.Listen = "127.0.0.1:0"
	emb, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer emb.Shutdown()
	nc, err := nats.Connect(emb.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SKEIN_LOG", Subjects: []string{"skein.log.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "skein.log.acme.T-x", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	emb.Shutdown()

	if err := os.Rename(filepath.Join(dir, "jetstream", "$G"), filepath.Join(dir, "jetstream", "SKEIN")); err != nil {
		t.Fatal(err)
	}
	skein, _ := connectAs(t, confServer(t, dir), "skein")
	after, err := jetstream.New(skein)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := after.Stream(t.Context(), "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := stream.GetMsg(t.Context(), 1)
	if err != nil || string(msg.Data) != "kept" {
		t.Errorf("the log was not taken over: %v", err)
	}
}
