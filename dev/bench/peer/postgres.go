package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is a server in a folder of its own, which is reached by a socket in that folder.
type Postgres struct {
	Version string // as it tells it

	dir    string
	socket string // folder of its socket: dir, or one of its own where that name is too long for one
	cmd    *exec.Cmd
	ended  chan struct{}
}

// longestSocket is how long the name of a socket may be: 103 bytes on some systems.
const longestSocket = 103

// postgresSettings differ from those of a new Postgres where a small one would be measured
// otherwise: room for what is in use, no checkpoint every few seconds, and connections.
// fsync and synchronous_commit are on by themselves, and said here because they matter.
func postgresSettings() []string {
	return []string{"fsync=on", "synchronous_commit=on", "listen_addresses=", "shared_buffers=512MB", "max_wal_size=4GB", "max_connections=100"}
}

// findPostgres returns the folder of Postgres' programs: on PATH, or the newest of Debian's.
func findPostgres() (string, error) {
	if found, err := exec.LookPath("initdb"); err == nil {
		bin := filepath.Dir(found)
		if _, err := os.Stat(filepath.Join(bin, "postgres")); err == nil {
			return bin, nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	best, newest := "", -1.0
	for _, f := range found {
		bin := filepath.Dir(f)
		if v, err := strconv.ParseFloat(filepath.Base(filepath.Dir(bin)), 64); err == nil && v > newest {
			best, newest = bin, v
		}
	}
	if best == "" {
		return "", fmt.Errorf("postgres: no initdb on PATH or in /usr/lib/postgresql: %w", ErrMissing)
	}
	return best, nil
}

// StartPostgres starts a server in a new folder within parent, "" for the system's temporary one.
// The error is ErrMissing if Postgres is not installed. Postgres refuses to run as root, so root
// runs it as the user postgres, or nobody.
func StartPostgres(ctx context.Context, parent string) (*Postgres, error) {
	bin, err := findPostgres()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "skein-bench-postgres-")
	if err != nil {
		return nil, fmt.Errorf("a folder for postgres: %w", err)
	}
	p := &Postgres{dir: dir}
	if err := p.start(ctx, bin); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// start creates the server's data, starts it, and waits until it accepts connections.
func (p *Postgres) start(ctx context.Context, bin string) (err error) {
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return err
	}
	owner, err := owner()
	if err != nil {
		return err
	}
	if p.socket = p.dir; len(p.dir)+len("/.s.PGSQL.5432") > longestSocket {
		if p.socket, err = os.MkdirTemp("/tmp", "skein-bench-postgres-"); err != nil {
			return fmt.Errorf("a folder for the socket of postgres: %w", err)
		}
	}
	for _, dir := range []string{p.dir, p.socket} {
		if owner == nil {
			break
		}
		if err := os.Chown(dir, int(owner.uid), int(owner.gid)); err != nil {
			return err
		}
	}
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "LC_ALL=C", "TMPDIR=" + p.dir}
	data := filepath.Join(p.dir, "data")
	create := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "skein", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	create.Dir, create.Env, create.SysProcAttr = p.dir, env, attributes(owner)
	if out, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("postgres: initdb in %s: %w: %s; choose a folder that its user can reach with --dir", p.dir, err, strings.TrimSpace(string(out)))
	}
	args := []string{"-D", data, "-k", p.socket}
	for _, s := range postgresSettings() {
		args = append(args, "-c", s)
	}
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(bin, "postgres"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = p.dir, env, attributes(owner), log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	p.cmd, p.ended = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log shows how it ended
		close(p.ended)
	}()
	return p.ready(ctx)
}

// identity is a user of the system.
type identity struct{ uid, gid uint32 }

// owner returns the user to run Postgres as, nil for the one of this process.
func owner() (*identity, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &identity{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("postgres: it refuses to run as root, and there is no user postgres or nobody; run this as another user")
}

// ready waits until the server accepts connections.
func (p *Postgres) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("not ready within two minutes"))
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.DSN())
		if err == nil {
			err = conn.QueryRow(ctx, "SHOW server_version").Scan(&p.Version)
			return errors.Join(err, conn.Close(ctx))
		}
		select {
		case <-p.ended:
			return fmt.Errorf("postgres ended: %s", p.said())
		case <-ctx.Done():
			return fmt.Errorf("postgres: %w (%w): %s", context.Cause(ctx), err, p.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// said returns the end of the server's log.
func (p *Postgres) said() string {
	log, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(log[max(len(log)-500, 0):]))
}

// DSN returns how clients reach the server.
func (p *Postgres) DSN() string {
	return fmt.Sprintf("host='%s' port=5432 user=skein dbname=postgres sslmode=disable", p.socket)
}

// Processor returns the processor time that the server's processes have used, 0 where the system
// does not tell.
func (p *Postgres) Processor() time.Duration { return family(p.cmd.Process.Pid) }

// Stop ends the server, if it runs, and removes its folder.
func (p *Postgres) Stop() error {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGINT) // ends the sessions, too; it may have ended
		select {
		case <-p.ended:
		case <-time.After(20 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	}
	if p.socket == "" {
		return os.RemoveAll(p.dir)
	}
	return errors.Join(os.RemoveAll(p.dir), os.RemoveAll(p.socket))
}
