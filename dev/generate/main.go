// Command generate writes what is derived from the vocabulary in package events:
// the JSON Schemas in schema/files and, in docs, the pages of events, commands,
// queries and state machines, the AsyncAPI document, and the page of clients. It fails when a file
// cites an id that requirements.txt does not have.
//
// The same vocabulary always yields the same bytes. With -check it writes nothing, names each
// file that is stale, missing or left over, and exits 1.
//
// The JSON Schemas are a contract. It is recorded in docs/contract.json, under a
// semantic version, with -contract VERSION, and -check fails until it is.
//
// With -cited REGEXP it only lists the tests that cite the requirements whose ids match.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/skein-threads/skein/dev/clients"
	"github.com/skein-threads/skein/schema"
)

func main() {
	var o options
	flag.BoolVar(&o.check, "check", false, "write nothing; exit 1 if a file is stale or a change of the contract is not recorded")
	flag.StringVar(&o.contract, "contract", "", "record the contract under this `VERSION`")
	flag.StringVar(&o.cited, "cited", "", "only list the tests that cite requirements whose ids match this `REGEXP`")
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	flag.Parse()
	if err := generate(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	root, contract, cited string
	check                 bool
}

// generate does what the flags ask for.
func generate(out io.Writer, o options) error {
	if o.cited != "" {
		return listCited(out, o.root, o.cited)
	}
	if o.check && o.contract != "" {
		return errors.New("-check writes nothing, and -contract does; give one of them")
	}
	err := run(out, o.root, o.check)
	switch {
	case o.check:
		return errors.Join(err, checkReferences(o.root), checkContract(o.root))
	case err != nil:
		return err
	case o.contract != "":
		return recordContract(out, o.root, o.contract)
	}
	if hint := checkContract(o.root); hint != nil {
		fmt.Fprintln(out, "hint:", hint)
	}
	return checkReferences(o.root)
}

// output is one generated file, its path from the root.
type output struct {
	path string
	body []byte
}

// outputs returns every generated file.
func outputs(root string) ([]output, error) {
	files, err := schema.Files()
	if err != nil {
		return nil, err
	}
	var all []output
	for _, f := range files {
		all = append(all, output{"schema/files/" + f.Path, f.Body})
	}
	for _, page := range []struct {
		path  string
		write func() ([]byte, error)
	}{
		{"docs/events.md", eventsPage},
		{"docs/commands.md", commandsPage},
		{"docs/queries.md", queriesPage},
		{"docs/state-machines.md", machinesPage},
		{"docs/asyncapi.yaml", asyncAPI},
		{"docs/clients.md", clients.Page},
		{"clients/typescript/client/src/contract.ts", typescript},
		{"clients/python/src/skein/contract.py", pythonTypes},
		{"clients/python/src/skein/_calls.pyi", pythonCalls},
	} {
		body, err := page.write()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", page.path, err)
		}
		all = append(all, output{page.path, body})
	}
	version, err := contractVersion(root)
	return append(all, version...), err
}

// run writes the files, or checks them, and removes schemas of what is no more.
func run(out io.Writer, root string, check bool) error {
	all, err := outputs(root)
	if err != nil {
		return err
	}
	return bring(out, root, all, check)
}

// bring writes outputs, or checks them, and removes schemas that are not among them.
func bring(out io.Writer, root string, all []output, check bool) error {
	stale := 0
	wanted := map[string]bool{}
	for _, o := range all {
		wanted[o.path] = true
		path := filepath.Join(root, filepath.FromSlash(o.path))
		now, err := os.ReadFile(path)
		switch {
		case err == nil && bytes.Equal(now, o.body):
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		stale++
		fmt.Fprintln(out, o.path)
		if check {
			continue
		}
		if err := write(path, o.body); err != nil {
			return err
		}
	}
	left, err := leftOver(root, wanted)
	if err != nil {
		return err
	}
	for _, path := range left {
		stale++
		fmt.Fprintln(out, path)
		if check {
			continue
		}
		if err := os.Remove(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	if check && stale > 0 {
		return fmt.Errorf("%d stale; run make generate", stale)
	}
	return nil
}

func write(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, body, 0o644)
}

// leftOver finds schemas that nothing generates any more.
func leftOver(root string, wanted map[string]bool) ([]string, error) {
	var left []string
	err := filepath.WalkDir(filepath.Join(root, "schema", "files"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if slashed := filepath.ToSlash(relative); err == nil && strings.HasSuffix(slashed, ".json") && !wanted[slashed] {
			left = append(left, slashed)
		}
		return err
	})
	return left, err
}
