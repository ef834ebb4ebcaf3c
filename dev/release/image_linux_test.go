package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// imageAtMost is the size of the image of one architecture, as it is pulled.
const imageAtMost = 40_000_000

// The image runs as an engine runs it, without one: its files are the root, which cannot be
// written; it is its user, in a network of its own, with its variables. It makes its keys and shows
// one once, refuses who has none, is healthy by its own check, and starts again with the same keys.
func testImage(t *testing.T, b *builder) {
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := writeImage(testVersion, file, map[string]string{"amd64": b.release(t), "arm64": b.release(t)}); err != nil {
		t.Fatal(err)
	}
	settings, layer := imageOf(t, file, runtime.GOARCH)
	t.Logf("compressed: %d bytes", len(layer))
	if len(layer) > imageAtMost {
		t.Errorf("the image has %d bytes, more than %d", len(layer), imageAtMost)
	}
	root, volume := t.TempDir(), t.TempDir()
	packed := filepath.Join(t.TempDir(), "layer.tar.gz")
	if err := os.WriteFile(packed, layer, 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, root, nil, "tar", "-xzf", packed)
	output(t, "", nil, "cp", "-a", filepath.Join(root, "data")+"/.", volume)
	output(t, "", nil, "chown", "--reference", filepath.Join(root, "data"), volume)
	s := contained(t, settings, root, volume)
	ask := networkOf(t, s.pid)
	key := func(text string) []string {
		return regexp.MustCompile(`skein_[0-9a-f]+_[0-9a-f]+`).FindAllString(text, -1)
	}
	for path, want := range map[string]int{"/api/threads": http.StatusUnauthorized, "/healthz": http.StatusOK} {
		if got := ask(path, ""); got != want {
			t.Errorf("%s without a key: %d, want %d", path, got, want)
		}
	}
	check := append([]string{"--target", strconv.Itoa(s.pid), "--net", "chroot", "--userspec=" + settings.User, root}, settings.Healthcheck.Test[1:]...)
	if out, err := exec.Command("nsenter", check...).CombinedOutput(); err != nil {
		t.Errorf("its health check: %v %s", err, out)
	}
	s.stop()
	keys := key(s.problems.String())
	if len(keys) != 1 {
		t.Fatalf("it shows %d keys, not one: %s", len(keys), s.problems)
	}
	if out, err := exec.Command("chroot", append([]string{"--userspec=" + settings.User, root}, settings.Healthcheck.Test[1:]...)...).CombinedOutput(); err == nil {
		t.Errorf("its health check says of none: %s", out)
	}
	s = contained(t, settings, root, volume)
	if got := networkOf(t, s.pid)("/api/threads", keys[0]); got != http.StatusOK {
		t.Errorf("with the key, after another start: %d", got)
	}
	s.stop()
	if again := key(s.problems.String()); len(again) > 0 {
		t.Errorf("it shows a key again: %v", again)
	}
}

// contained starts what the image is for.
func contained(t *testing.T, settings config, root, volume string) served {
	t.Helper()
	script := `set -eu
root=$1; volume=$2; user=$3; shift 3
mount --bind "$root" "$root"
mount --bind "$volume" "$root/data"
mount -o remount,bind,ro "$root"
if touch "$root/tmp/x" 2>/dev/null; then echo "the root can be written" >&2; exit 1; fi
cd "$root"
exec chroot --userspec="$user" "$root" "$@"
`
	args := append([]string{"--mount", "--net", "sh", "-c", script, "sh", root, volume, settings.User}, append(settings.Entrypoint, settings.Cmd...)...)
	cmd := exec.Command("unshare", args...)
	cmd.Env = settings.Env
	return serve(t, cmd)
}

// imageOf reads the configuration and the layer of an architecture from an archive.
func imageOf(t *testing.T, file, arch string) (config, []byte) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(body)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			files[header.Name], err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string, into any) {
		t.Helper()
		if err := json.Unmarshal(files[name], into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	blob := func(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }
	var top, list index
	read("index.json", &top)
	read(blob(top.Manifests[0]), &list)
	for _, d := range list.Manifests {
		if d.Platform.Architecture != arch {
			continue
		}
		var m manifest
		var c struct{ Config config }
		read(blob(d), &m)
		read(blob(m.Config), &c)
		return c.Config, files[blob(m.Layers[0])]
	}
	t.Fatalf("there is no image for %s", arch)
	return config{}, nil
}

// networkOf returns what asks the HTTP listener in the network of a process, whose loopback it
// brings up.
func networkOf(t *testing.T, pid int) func(path, key string) int {
	t.Helper()
	inside := func(do func() error) error {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // for ever: the thread ends with the goroutine
			fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				err = unix.Setns(fd, unix.CLONE_NEWNET)
				_ = unix.Close(fd)
			}
			if err == nil {
				err = do()
			}
			done <- err
		}()
		return <-done
	}
	if err := inside(loopbackUp); err != nil {
		t.Fatal(err)
	}
	web := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(_ context.Context, network, address string) (conn net.Conn, err error) {
		err = inside(func() error {
			conn, err = (&net.Dialer{Timeout: patience}).Dial(network, address)
			return err
		})
		return conn, err
	}}}
	return func(path, key string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8420"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			request.Header.Set("Authorization", "Bearer "+key)
		}
		answer, err := web.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
}

// loopbackUp brings up the loopback of the network of this thread.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
