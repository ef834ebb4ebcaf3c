package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// installPage returns docs/install.md.
func installPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository.Root(), "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// onPage returns the line of docs/install.md that begins with a command, for the version of the tests.
func onPage(t *testing.T, command string) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(command) + `.*$`).FindString(installPage(t))
	if line == "" {
		t.Fatalf("docs/install.md does not say %s", command)
	}
	return strings.ReplaceAll(line, "0.1.0", testVersion)
}

// What an archive has is there, and a user of one verifies it, unpacks it and starts the program as the
// page says. One that was changed is not accepted.
func testArchive(t *testing.T, b *builder) {
	c, tree, dir := goreleaser(t).Archives[0], t.TempDir(), t.TempDir()
	name := system{"linux", "amd64"}.archive(t)
	output(t, "", nil, "cp", b.release(t), filepath.Join(tree, "skein"))
	for _, f := range c.Files {
		found, err := filepath.Glob(filepath.Join(repository.Root(), f.Src))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s (%v)", f.Src, err)
		}
		to := filepath.Join(tree, f.Dst)
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		output(t, "", nil, "cp", append(found, to)...)
	}
	output(t, tree, nil, "tar", "-czf", filepath.Join(dir, name), ".", "--transform", "s,^\\./,,")
	body, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(dir, "checksums.txt")
	for _, c := range []struct {
		sum  string
		fits bool
	}{{strings.Repeat("0", 64), false}, {fmt.Sprintf("%x", sha256.Sum256(body)), true}} {
		if err := os.WriteFile(sums, fmt.Appendf(nil, "%s  %s\n%s  another.zip\n", c.sum, name, c.sum), 0o600); err != nil {
			t.Fatal(err)
		}
		check := exec.CommandContext(t.Context(), "sh", "-c", onPage(t, "sha256sum"))
		check.Dir = dir
		if out, err := check.CombinedOutput(); (err == nil) != c.fits {
			t.Errorf("the sum %s: %v %s", c.sum, err, out)
		}
	}
	output(t, dir, nil, "sh", "-c", onPage(t, "tar"))
	start, _, _ := strings.Cut(onPage(t, "./skein serve"), "#")
	cmd := exec.Command("sh", "-c", "exec "+strings.TrimSpace(start)+" --nats-listen 127.0.0.1:0 --http-listen 127.0.0.1:0")
	cmd.Dir = dir
	serve(t, cmd)
	if _, err := os.Stat(filepath.Join(dir, "skein-data")); err != nil {
		t.Error(err)
	}
}

// A release with a key signs its checksums, and a user verifies them as the page says; what was changed
// since is refused.
func testSignature(t *testing.T, _ *builder) {
	home, dir := t.TempDir(), t.TempDir()
	gpg := []string{"GNUPGHOME=" + home, "SKEIN_SIGNING_KEY=someone@example.com"}
	output(t, dir, gpg, "gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "someone@example.com", "ed25519", "sign")
	sums := filepath.Join(dir, "checksums.txt")
	if err := os.WriteFile(sums, []byte("0  skein.tar.gz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sign := goreleaser(t).Signs[0]
	names := strings.NewReplacer("{{.Env.SKEIN_SIGNING_KEY}}", "someone@example.com", "$signature", sums+".sig", "$artifact", sums)
	for i := range sign.Args {
		sign.Args[i] = names.Replace(sign.Args[i])
	}
	output(t, dir, gpg, sign.Cmd, sign.Args...)
	verify := onPage(t, "gpg --verify")
	output(t, dir, gpg, "sh", "-c", verify)
	if err := os.WriteFile(sums, []byte("1  skein.tar.gz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := exec.CommandContext(t.Context(), "sh", "-c", verify)
	changed.Dir, changed.Env = dir, append(clean(), gpg...)
	if out, err := changed.CombinedOutput(); err == nil || !strings.Contains(string(out), "BAD signature") {
		t.Errorf("%q accepts checksums that were changed: %v %s", verify, err, out)
	}
}
