package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// resealed returns a file whose lines were changed, with an unsigned manifest that fits them.
func resealed(t *testing.T, file string, change func(lines []string) []string) string {
	t.Helper()
	lines := strings.SplitAfter(strings.TrimSuffix(file, "\n"), "\n")
	var last struct {
		Manifest map[string]any `json:"manifest"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	lines = change(append([]string{}, lines[:len(lines)-1]...))
	all := strings.Join(lines, "")
	sum := sha256.Sum256([]byte(all))
	last.Manifest["digest"], last.Manifest["bytes"], last.Manifest["lines"] = hex.EncodeToString(sum[:]), len(all), len(lines)
	raw, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	return all + string(raw) + "\n"
}

// rewritten returns a change of the first line that a pattern matches.
func rewritten(t *testing.T, pattern, with string) func([]string) []string {
	re := regexp.MustCompile(pattern)
	return func(lines []string) []string {
		for i, line := range lines {
			if re.MatchString(line) {
				lines[i] = re.ReplaceAllString(line, with)
				return lines
			}
		}
		t.Errorf("no line matches %s", pattern)
		return lines
	}
}

// A file that nobody signed, with an altered sequence and a manifest that fits, is not what the log
// has.
func TestWitness_AlteredSequences(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	for name, file := range map[string]string{
		"an end in a file of chains": resealed(t, h.export(ExportOptions{Chains: true}), rewritten(t, `("end":"[^"]*`+threadOne+`".*"seq":)\d+`, "${1}1")),
		"the first commit":           resealed(t, h.export(ExportOptions{}), rewritten(t, `"seq":10,("subject":"[^"]*`+threadTwo+`")`, "\"seq\":5,$1")),
	} {
		before := h.export(ExportOptions{})
		if file == before {
			t.Errorf("%s: the file was not changed", name)
		}
		found := h.witness(file, ReadOptions{})
		if len(found) != 1 || found[0].Kind != KindWitness || !strings.Contains(found[0].Detail, "altered") {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// verify.py refuses what its page's rules exclude, also with a manifest that fits.
func TestVerifier_ResealedFiles(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	script, err := filepath.Abs(filepath.FromSlash("../examples/python/verify.py"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "export")
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`)
	h.do("file.write", `{"threadId":"`+threadOne+`","data":{"path":"/hello","content":"aGVsbG8="}}`)
	good, contents := h.export(ExportOptions{}), h.export(ExportOptions{Contents: true})
	signed := h.export(ExportOptions{Signer: signer(t)})
	same := func(lines []string) []string { return lines }
	of := func(lines []string, thread, kind string) int {
		for i, line := range lines {
			if strings.HasPrefix(line, `{"`+kind+`":`) && strings.Contains(line, thread) {
				return i
			}
		}
		t.Fatalf("there is no %s of %s", kind, thread)
		return 0
	}
	twice := func(thread, kind string) func([]string) []string {
		return func(lines []string) []string {
			i := of(lines, thread, kind)
			return append(lines[:i+1], lines[i:]...)
		}
	}
	for name, c := range map[string]struct {
		file string
		bad  bool
	}{
		"the file, sealed again":          {resealed(t, good, same), false},
		"with contents, sealed again":     {resealed(t, contents, same), false},
		"a sequence that goes back":       {resealed(t, good, rewritten(t, `"seq":3,("subject":"[^"]*`+threadOne+`")`, "\"seq\":1,$1")), true},
		"the tombstone twice":             {resealed(t, good, twice(threadTwo, "seq")), true},
		"a tombstone of another kind":     {resealed(t, good, rewritten(t, `\\"purge\\":true`, `\"purge\":\"yes\"`)), true},
		"a content cut off":               {resealed(t, contents, rewritten(t, `"offset":0,"piece":"aGVsbG8="`, `"offset":0,"piece":"aGVs"`)), true},
		"a content in another base64":     {resealed(t, contents, rewritten(t, `"piece":"aGVsbG8="`, `"piece":"aGVsbG9="`)), true},
		"a content with bytes of no kind": {resealed(t, contents, rewritten(t, `"piece":"aGVsbG8="`, `"piece":"aGVs!bG8="`)), true},
		"a line of no form":               {resealed(t, good, func(lines []string) []string { return append(lines, "{\"note\":\"x\"}\n") }), true},
		"a name twice":                    {resealed(t, good, rewritten(t, `^\{"end":`, `{"commits":1,"end":`)), true},
		"an end twice":                    {resealed(t, good, twice(threadOne, "end")), true},
		"a commit in a file of chains":    {resealed(t, good, rewritten(t, `"file":"skein-export"`, `"file":"skein-export","chains":true`)), true},
		"another highest sequence":        {regexp.MustCompile(`"lastSeq":\d+`).ReplaceAllString(good, `"lastSeq":99999`), true},
		"a key of another checksum":       {regexp.MustCompile(`("key":"[A-Z2-7]{53})..."`).ReplaceAllString(signed, `${1}AAA"`), true},
		"a signature of nobody":           {regexp.MustCompile(`"key":"[A-Z2-7]+",`).ReplaceAllString(signed, ""), true},
		"a key without a signature":       {regexp.MustCompile(`,"signature":"[^"]+"`).ReplaceAllString(signed, ""), true},
	} {
		if c.bad && (c.file == good || c.file == contents || c.file == signed) {
			t.Errorf("%s: the file was not changed", name)
			continue
		}
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), python, script, path).CombinedOutput()
		if (err != nil) != c.bad || strings.Contains(string(out), "Traceback") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
