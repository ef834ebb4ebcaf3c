package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// edits returns a line, each with one field changed: left out, of another value or type, or one that
// its form does not have.
func edits(t *testing.T, line string) map[string]string {
	t.Helper()
	first, _, _ := strings.Cut(strings.TrimPrefix(line, `{"`), `"`)
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	with := func(what string, change func(map[string]any)) {
		one := maps.Clone(fields)
		change(one)
		var b strings.Builder
		names := slices.Sorted(maps.Keys(one))
		slices.SortStableFunc(names, func(a, b string) int { // the line begins as it did
			switch {
			case a == first:
				return -1
			case b == first:
				return 1
			}
			return 0
		})
		for i, name := range names {
			raw, err := json.Marshal(one[name])
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%c%q:%s", "{,"[min(i, 1)], name, raw)
		}
		out[first+": "+what] = b.String() + "}\n"
	}
	with("as it is", func(map[string]any) {})
	with("a field of no form", func(m map[string]any) { m["note"] = "x" })
	with("two bodies", func(m map[string]any) { m["body"], m["base64"] = "[]", "W10=" })
	for name, v := range fields {
		values := []any{nil, true, []any{}, map[string]any{}, -1, 1.5}
		switch v := v.(type) {
		case string:
			values = append(values, "", v+" ", " "+v, v+"\n", "x"+v, strings.ToUpper(v), "0"+v, "+"+v, 7)
		case float64:
			values = append(values, v+1, v+1e6, v-1, 0, fmt.Sprint(v))
		}
		with(name+" left out", func(m map[string]any) { delete(m, name) })
		for _, value := range values {
			with(fmt.Sprintf("%s is %.80q", name, fmt.Sprint(value)), func(m map[string]any) { m[name] = value })
		}
	}
	return out
}

// runAll is a program that runs another one on each of the files 0, 1, 2, ... of a folder, and prints
// what each says.
const runAll = `
import contextlib, io, os, sys
_, script, folder, many = sys.argv
program = compile(open(script).read(), script, "exec")
for i in range(int(many)):
    sys.argv, said = [script, os.path.join(folder, str(i))], io.StringIO()
    try:
        with contextlib.redirect_stdout(said): exec(program, {"__name__": "__main__"})
        said = said.getvalue()
    except SystemExit as e: said = e.code
    except Exception as e: said = f"crashed: {e!r}"
    sys.stdout.write(f"{said}\x00")
`

// verify.py refuses what Skein's own reader refuses, whichever field was edited and whichever line
// was left out, repeated or moved, in a file whose manifest fits.
func TestVerifier_EveryEdit(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	script, err := filepath.Abs(filepath.FromSlash("../examples/python/verify.py"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil { // so that the go command knows what the test depends on
		t.Fatal(err)
	}
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.do("file.write", `{"threadId":"`+threadOne+`","data":{"path":"/hello","content":"aGVsbG8="}}`)
	h.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`)
	dir := t.TempDir()
	type edited struct {
		name string
		err  error // of Skein's reader
	}
	var tried []edited
	refused := 0
	try := func(name, file string) {
		_, err := ReadFile(strings.NewReader(file), h.validator, ReadOptions{})
		if err != nil {
			refused++
		} else if !strings.Contains(name, "as it is") { // it changes what means nothing, or what nothing in the file proves
			return
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(len(tried))), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		tried = append(tried, edited{name, err})
	}
	for kind, file := range map[string]string{"contents": h.export(ExportOptions{Contents: true}), "chains": h.export(ExportOptions{Chains: true})} {
		lines := strings.SplitAfter(strings.TrimSuffix(file, "\n"), "\n")
		lines = lines[:len(lines)-1]
		seen := map[string]int{}
		for i, line := range lines {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, `{"`), `"`)
			try(fmt.Sprintf("%s: line %d left out", kind, i+1), resealed(t, file, func(l []string) []string { return slices.Delete(l, i, i+1) }))
			try(fmt.Sprintf("%s: line %d twice", kind, i+1), resealed(t, file, func(l []string) []string { return slices.Insert(l, i, l[i]) }))
			if i > 0 {
				try(fmt.Sprintf("%s: line %d moved", kind, i+1), resealed(t, file, func(l []string) []string { l[i-1], l[i] = l[i], l[i-1]; return l }))
			}
			if seen[first]++; seen[first] > 1 {
				continue
			}
			for name, edited := range edits(t, line) {
				try(kind+": "+name, resealed(t, file, func(l []string) []string { l[i] = edited; return l }))
			}
		}
		whole := resealed(t, file, func(l []string) []string { return l })
		at := strings.LastIndex(strings.TrimSuffix(whole, "\n"), "\n") + 1
		var last struct {
			Manifest json.RawMessage `json:"manifest"`
		}
		if err := json.Unmarshal([]byte(whole[at:]), &last); err != nil {
			t.Fatal(err)
		}
		for name, edited := range edits(t, string(last.Manifest)) {
			try(kind+": manifest: "+name, whole[:at]+`{"manifest":`+strings.TrimSuffix(edited, "\n")+"}\n")
		}
		for name, edited := range edits(t, whole[at:]) {
			try(kind+": last line: "+name, whole[:at]+edited)
		}
	}
	if refused < 300 {
		t.Errorf("only %d edits are refused", refused)
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", runAll, script, dir, strconv.Itoa(len(tried))).Output()
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(said) != len(tried) {
		t.Fatalf("%d answers to %d files", len(said), len(tried))
	}
	for i, one := range tried {
		if right := strings.HasPrefix(said[i], "right: "); right != (one.err == nil) || strings.HasPrefix(said[i], "crashed") {
			t.Errorf("%s: Skein says %v, and verify.py %s", one.name, one.err, said[i])
		}
	}
}
