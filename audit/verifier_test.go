package audit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program examples/python/verify.py checks an export: it takes what is right, a
// purged thread's tombstone too, and refuses what was changed.
func TestVerifier_WithoutSkein(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	script, err := filepath.Abs(filepath.FromSlash("../examples/python/verify.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	check := func(file string) (string, error) {
		path := filepath.Join(dir, "export")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), python, script, path).CombinedOutput()
		return string(out), err
	}

	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`)
	h.do("file.write", `{"threadId":"`+threadOne+`","data":{"path":"/hello","content":"aGVsbG8="}}`)
	key := signer(t)
	contents := h.export(ExportOptions{Contents: true, Signer: key})
	good := h.export(ExportOptions{Signer: key})
	for name, file := range map[string]string{
		"signed": good, "not signed": h.export(ExportOptions{}), "chains": h.export(ExportOptions{Chains: true, Signer: key}), "with contents": contents,
	} {
		if out, err := check(file); err != nil || !strings.HasPrefix(out, "right: 2 threads") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}

	lines := strings.SplitAfter(good, "\n")
	at := -1
	for i, line := range lines {
		if strings.HasPrefix(line, `{"seq":`) && strings.Contains(line, threadOne) {
			at = i
			break
		}
	}
	again := *key // a manifest that fits, of another signer
	other := signer(t)
	forged := strings.Replace(h.export(ExportOptions{Signer: other}), other.Public(), again.Public(), 1)
	bad := map[string]string{
		"an altered body":     strings.Replace(good, "T-0190a000", "T-0190a001", 1),
		"a commit is missing": strings.Join(append(append([]string{}, lines[:at]...), lines[at+1:]...), ""),
		"an altered content":  strings.Replace(contents, `"piece":"aGVsbG8="`, `"piece":"aGVsbG9="`, 1),
		"cut off":             strings.Join(lines[:len(lines)/2], ""),
		"continued":           good + lines[at],
		"swapped":             strings.Join(append(append(append([]string{}, lines[:at]...), lines[at+1], lines[at]), lines[at+2:]...), ""),
	}
	if _, err := exec.LookPath("openssl"); err == nil {
		bad["another's signature"] = forged
	} else {
		t.Log("there is no openssl: signatures are not checked")
	}
	for name, file := range bad {
		if out, err := check(file); err == nil {
			t.Errorf("%s: %s", name, out)
		}
	}
}
