package examples_test

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/dev/bench/peer"
	"github.com/skein-threads/skein/dev/bench/peer/peertest"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// The program of docs/follow.md is that of examples/titles, unchanged. It, that of examples/follow and
// its like for Node keep their tables right: from a snapshot on, when it is killed, when events leave the timeline while it is
// away, and when it begins again.
func TestDocs_FollowAndProject(t *testing.T) {
	blocks := fencedBlocks(read(t, "../docs/follow.md"))
	if len(blocks["go"]) != 1 || blocks["go"][0] != read(t, "titles/main.go") {
		t.Fatal("docs/follow.md does not show titles/main.go as it is")
	}
	const titles, tables, followGo, rebuildGo, followNode = `go run ./examples/titles`, `psql "$DATABASE_URL" -f examples/follow/schema.sql`, `go run ./examples/follow`,
		`go run ./examples/follow --rebuild`, `cd examples/follow && npm install && node follow.mjs`
	shell := strings.Split(strings.TrimSpace(strings.Join(blocks["sh"], "")), "\n")
	if !slices.Equal(shell, []string{titles, tables, followGo, rebuildGo, followNode}) {
		t.Errorf("docs/follow.md shows the commands %q", shell)
	}
	if len(blocks["sql"]) != 2 || blocks["sql"][0] != read(t, "follow/schema.sql") || len(blocks) != 3 {
		t.Fatalf("docs/follow.md has other blocks: %d of SQL, of %d languages", len(blocks["sql"]), len(blocks))
	}
	db, err := peer.StartPostgres(t.Context(), peertest.Dir(t))
	if err != nil {
		t.Skipf("no Postgres: %v", err)
	}
	t.Cleanup(func() { _ = db.Stop() })
	for language, start := range map[string]func(*testing.T) (dir string, program []string){"go": buildFollower, "node": installFollower, "titles": buildTitles} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := skeintest.Start(t, func(o *skein.Options) {
				o.NATSListen, o.HTTPListen, o.Tenant = "127.0.0.1:0", "127.0.0.1:0", "acme"
			})
			f := &followed{T: t, c: s.Client("acme"), server: s.Addresses().NATS, query: blocks["sql"][1]}
			f.dir, f.program = start(t)
			f.open(db.DSN(), "follow_"+language)
			f.env = append(os.Environ(), "SKEIN_SERVER="+f.server, "SKEIN_URL="+s.Addresses().HTTP, "DATABASE_URL="+f.url)
			if language == "titles" {
				f.titles()
				return
			}
			shell := exec.CommandContext(t.Context(), "sh", "-c", tables)
			shell.Dir, shell.Env = "..", f.env
			if out, err := shell.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", tables, err, out)
			}
			f.follow()
		})
	}
}

// fencedBlocks returns the fenced blocks of a page by their languages.
func fencedBlocks(page string) map[string][]string {
	blocks := map[string][]string{}
	for i, part := range strings.Split("\n"+page, "\n```") {
		if language, block, _ := strings.Cut(part, "\n"); i%2 == 1 {
			blocks[language] = append(blocks[language], block+"\n")
		}
	}
	return blocks
}

func buildFollower(t *testing.T) (dir string, program []string) { return build(t, "./follow") }

func buildTitles(t *testing.T) (dir string, program []string) { return build(t, "./titles") }

// build builds an example.
func build(t *testing.T, example string) (dir string, program []string) {
	dir = t.TempDir()
	binary := filepath.Join(dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", binary, example).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir, []string{binary}
}

func installFollower(t *testing.T) (dir string, program []string) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed")
	}
	dir = t.TempDir()
	for _, name := range []string{"package.json", "follow.mjs"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, "follow/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0", "--fetch-timeout=20000")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install the client of Postgres: %v: %.300s", err, out)
	}
	return dir, []string{node, "follow.mjs"}
}

// followed is a program that follows a tenant, and its tables.
type followed struct {
	*testing.T
	c                       *client.Client
	server, url, query, dir string
	program, env            []string
	db                      *pgx.Conn
	threads                 []string
}

func (f *followed) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// open connects to a new database.
func (f *followed) open(dsn, name string) {
	config, err := pgx.ParseConfig(dsn)
	f.must(err)
	admin, err := pgx.ConnectConfig(f.Context(), config)
	f.must(err)
	_, err = admin.Exec(f.Context(), "CREATE DATABASE "+name)
	f.must(err)
	f.must(admin.Close(f.Context()))
	f.url = "postgresql://" + config.User + "@localhost/" + name + "?sslmode=disable&host=" + url.QueryEscape(config.Host)
	f.db, err = pgx.Connect(f.Context(), f.url)
	f.must(err)
	f.Cleanup(func() { _ = f.db.Close(context.Background()) })
}

// start starts the program; the returned function kills it.
func (f *followed) start(args ...string) (kill func()) {
	command := append(slices.Clone(f.program), args...)
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = f.dir, f.env
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	f.must(c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		select {
		case err := <-ended:
			f.Errorf("the program ended: %v: %s", err, said.String())
		default:
			_ = c.Process.Signal(syscall.SIGKILL)
			<-ended
		}
	}
	f.Cleanup(kill)
	return kill
}

// write changes some threads, and adds one.
func (f *followed) write() {
	f.Helper()
	made, err := f.c.Send(f.Context(), "", events.CreateThread{Title: "Order"})
	f.must(err)
	f.threads = append(f.threads, made.ThreadID)
	for _, thread := range f.threads {
		for range 3 {
			_, err = f.c.Send(f.Context(), thread, events.CreateItem{Item: events.NewItem{
				Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"}]`),
			}})
			f.must(err)
		}
	}
}

func (f *followed) follow() {
	f.write()
	f.write()
	_, err := f.c.Send(f.Context(), f.threads[0], events.UpdateThread{Archived: new(true)})
	f.must(err)
	kill := f.start()
	f.awaitTables()
	f.write()
	_, err = f.c.Send(f.Context(), f.threads[1], events.DeleteThread{})
	f.must(err)
	f.threads = slices.Delete(f.threads, 1, 2)
	f.awaitTables()

	f.write() // it is killed at work: what it had not settled comes again, after 30 s
	kill()
	kill = f.start()
	f.awaitTables()

	kill()
	f.write()
	f.expireTimeline()
	f.write()
	kill = f.start()
	f.awaitTables()
	before := f.began()
	kill()
	kill = f.start("--rebuild")
	for f.began() == before {
		time.Sleep(10 * time.Millisecond)
	}
	f.write()
	f.awaitTables()
	kill()

	var status string
	var threads, items int64
	f.must(f.db.QueryRow(f.Context(), f.query).Scan(&status, &threads, &items))
	if status != string(events.ThreadOpen) || threads == 0 || items < threads {
		f.Errorf("the query of the page returns %s, %d, %d", status, threads, items)
	}
}

// began returns where the tables' consumer began; 0 while they are empty.
func (f *followed) began() (start int64) {
	f.must(f.db.QueryRow(f.Context(), `SELECT coalesce(max(start), 0) FROM position`).Scan(&start))
	return start
}

// awaitTables waits until the tables show what there is: each thread as it is, and each event since
// the snapshot once.
func (f *followed) awaitTables() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 5*time.Minute)
	defer cancel()
	for {
		wrong := f.difference()
		if wrong == "" {
			return
		}
		select {
		case <-ctx.Done():
			f.Fatal(wrong)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// difference says how the tables differ from what there is.
func (f *followed) difference() string {
	start := f.began()
	if start == 0 {
		return "the tables are empty"
	}
	line, err := f.c.Timeline(f.Context(), client.SubscribeOptions{From: client.Seq(start), Aggregates: true, History: true})
	f.must(err)
	defer line.Close()
	var want []string
	for e, err := range line.All(f.Context()) {
		f.must(err)
		want = append(want, e.ID)
	}
	var got []string
	f.must(f.db.QueryRow(f.Context(), `SELECT coalesce(array_agg(event), '{}') FROM changes`).Scan(&got))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return "changes does not have each event once"
	}
	var threads int
	f.must(f.db.QueryRow(f.Context(), `SELECT count(*) FROM threads`).Scan(&threads))
	for _, archived := range []bool{false, true} {
		list, err := client.Read(f.Context(), f.c, events.ListThreads{Archived: &archived, Limit: new(int64(1000))})
		f.must(err)
		for _, thread := range list.Threads {
			var same bool
			f.must(f.db.QueryRow(f.Context(), `SELECT EXISTS (SELECT FROM threads WHERE id = $1 AND version = $2 AND items = $3)`, thread.ID, thread.Version, thread.Items).Scan(&same))
			if !same {
				return "threads does not have " + thread.ID + " as it is"
			}
			threads--
		}
	}
	if threads != 0 {
		return "threads has others than there are"
	}
	return ""
}

// expireTimeline lets everything leave the timeline by its age.
func (f *followed) expireTimeline() {
	js, err := jetstream.New(natstest.Dial(f, f.server))
	f.must(err)
	stream, err := js.Stream(f.Context(), "SKEIN_TIMELINE")
	f.must(err)
	was := stream.CachedInfo().Config
	short := was
	short.MaxAge, short.Duplicates = 100*time.Millisecond, 100*time.Millisecond
	_, err = js.UpdateStream(f.Context(), short)
	f.must(err)
	for stream.CachedInfo().State.Msgs > 0 {
		_, err = stream.Info(f.Context())
		f.must(err)
	}
	_, err = js.UpdateStream(f.Context(), was)
	f.must(err)
}
