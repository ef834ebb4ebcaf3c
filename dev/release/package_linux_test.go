package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/dev/repository"
)

// One program is built, packed and installed; what follows runs it as a user gets it.
func TestRelease(t *testing.T) {
	released(t)
	b := &builder{dir: t.TempDir(), programs: map[string]string{}}
	if err := run([]string{"docs", filepath.Join(repository.Root(), "bin", "release")}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, *builder)
	}{
		{"go install", testGoInstall}, {"version", testVersionOfRelease}, {"Debian package", testDebianPackage}, {"RPM package", testRPMPackage},
		{"archive", testArchive}, {"other systems", testSystems}, {"signature", testSignature}, {"image", testImage},
		{"store of a release", testStoreOfRelease},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b) })
	}
}

// A release names itself to its user and to the clients of its services.
func testVersionOfRelease(t *testing.T, b *builder) {
	program := b.release(t)
	if got := told(t, program); got.Version != testVersion || got.Commit != testCommit || got.Date != testDate || got.Contract != contract(t) {
		t.Errorf("it says %+v", got)
	}
	s := serve(t, exec.Command(program, "serve", "--store", t.TempDir(), "--nats-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"))
	nc, err := nats.Connect(s.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, name := range []string{"skein-commands", "skein-queries", "skein-files", "skein-embeddings"} {
		var info struct {
			Version  string
			Metadata map[string]string
		}
		answer, err := nc.Request("$SRV.INFO."+name, nil, patience)
		if err == nil {
			err = json.Unmarshal(answer.Data, &info)
		}
		if err != nil || info.Version != testVersion || info.Metadata["commit"] != testCommit || info.Metadata["date"] != testDate || info.Metadata["contract"] != contract(t) {
			t.Errorf("%s: %+v (%v)", name, info, err)
		}
	}
}

// packed is a package of the release, deb or rpm, made by nfpm from the section of .goreleaser.yaml.
func packed(t *testing.T, b *builder, kind string) string {
	t.Helper()
	section := maps.Clone(goreleaser(t).NFPMs[0])
	section["name"], section["arch"], section["version"] = section["package_name"], "amd64", testVersion
	section["contents"] = append(section["contents"].([]any), map[string]any{
		"src": b.release(t), "dst": section["bindir"].(string) + "/skein", "file_info": map[string]any{"mode": 0o755},
	})
	for _, only := range []string{"package_name", "file_name_template", "formats", "bindir"} {
		delete(section, only) // goreleaser's own
	}
	body, err := yaml.Marshal(section)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nfpm.yaml"), body, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "skein."+kind)
	output(t, repository.Root(), []string{"GOWORK=off"}, "go", "run", nfpm, "package", "--config", filepath.Join(dir, "nfpm.yaml"), "--packager", kind, "--target", file)
	return file
}

// patience is how long a busy machine may take for an answer.
const patience = time.Minute

// nfpm packs, also inside of goreleaser.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// installed is what a package has put into $root: its user, its unit, its pages and completions. It
// serves as that user.
const installed = `
test "$(chroot $root stat -c '%U %G %a' /etc/skein/skein.env)" = 'root skein 640'
chroot $root /usr/bin/skein version | grep -qx 'skein ` + testVersion + `'
chroot $root bash -c '. /usr/share/bash-completion/completions/skein && complete -p skein' | grep -q __start_skein
gzip -dc $root/usr/share/man/man1/skein-serve.1.gz | grep -q 'TH "SKEIN-SERVE"'
if chroot $root sh -c 'command -v systemd-analyze' >/dev/null; then chroot $root systemd-analyze verify --man=no /usr/lib/systemd/system/skein.service >&2; fi
chroot $root chown skein:skein /var/lib/skein
exec chroot --userspec=skein:skein $root /usr/bin/skein serve --store /var/lib/skein/store --nats-listen 127.0.0.1:0 --http-listen 127.0.0.1:0
`

// install installs a package in a copy of this machine's files, which is thrown away.
func install(t *testing.T, script, file string) {
	t.Helper()
	s := serve(t, apart(t, script+installed, file))
	if s.NATS == "" || s.HTTP == "" {
		t.Errorf("the installed program says %+v", s)
	}
}

func testDebianPackage(t *testing.T, b *builder) {
	const script = `
mkdir -p $root/var/lib/skein
cp "$1" $root/tmp/skein.deb
chroot $root dpkg --no-triggers -i /tmp/skein.deb >&2
chroot $root dpkg -s skein | grep '^Status: install ok' >&2
`
	file := packed(t, b, "deb")
	install(t, script, file)
	testRemoved(t, script, removesDebian, file)
}

// Here rpm knows of nothing else that is installed: only what is a part of rpm itself is needed.
func testRPMPackage(t *testing.T, b *builder) {
	const script = `
mkdir -p $root/var/lib/skein
cp "$1" $root/tmp/skein.rpm
test -z "$(chroot $root rpm -qp --requires /tmp/skein.rpm | grep -vE '^(rpmlib\(.*|/bin/sh|config\(.*)' )"
chroot $root rpm --nodeps -i /tmp/skein.rpm >&2
chroot $root rpm -q skein >&2
chroot $root rpm -q --configfiles skein | grep -qx /etc/skein/skein.env
`
	file := packed(t, b, "rpm")
	install(t, script, file)
	testRemoved(t, script, removesRPM, file)
}

// apart runs a script in a mount namespace of its own, where $root is a copy of this machine's
// files that takes changes and forgets them.
func apart(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	prepare := `set -eu
work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
root=$work/root
mount -t tmpfs tmpfs $root/tmp
mkdir -p $root/proc && mount --bind /proc $root/proc
`
	return exec.Command("unshare", append([]string{"--mount", "sh", "-c", prepare + script, "sh"}, args...)...)
}

// served is a server that said that it is ready.
type served struct {
	NATS, HTTP, Ops string
	pid             int
	problems        *strings.Builder // what it says besides; read it after stop
	stop            func()           // ends it as an operator does, and waits
}

// serve starts a server, and waits until it is ready. The end of the test ends it, as an operator
// does.
func serve(t *testing.T, cmd *exec.Cmd) served {
	t.Helper()
	s := served{problems: &strings.Builder{}}
	cmd.Env = append(clean(), cmd.Env...)
	cmd.Stderr = s.problems
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.pid = cmd.Process.Pid
	s.stop = sync.OnceFunc(func() {
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
			t.Errorf("its end: %v\n%s", err, s.problems)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		rest, ready := strings.CutPrefix(lines.Text(), "skein is ready: ")
		if !ready {
			continue
		}
		for part := range strings.SplitSeq(rest, ", ") {
			switch name, at, _ := strings.Cut(part, " "); name {
			case "nats":
				s.NATS = at
			case "http":
				s.HTTP = at
			case "ops":
				s.Ops = at
			}
		}
		t.Cleanup(s.stop)
		return s
	}
	err = cmd.Wait()
	t.Fatalf("it is not ready: %v\n%s", err, s.problems)
	return s
}
