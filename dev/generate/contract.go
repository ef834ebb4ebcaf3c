package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/change"
	"github.com/skein-threads/skein/schema"
)

// contractPath is where the contract lies as it was last recorded.
const contractPath = "docs/contract.json"

// contract is every JSON Schema without its words, under a version.
type contract struct {
	Version string                 `json:"version"`
	Schemas map[string]events.JSON `json:"schemas"` // by the path below schema/files
}

// version is a semantic version.
type version struct{ major, minor, patch uint64 }

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

func parseVersion(text string) (version, error) {
	var n [3]uint64
	parts := strings.Split(text, ".")
	for i := range min(len(parts), len(n)) {
		n[i], _ = strconv.ParseUint(parts[i], 10, 32)
	}
	v := version{n[0], n[1], n[2]}
	if v.String() != text {
		return version{}, fmt.Errorf("%q is not a version; write it like 1.2.3", text)
	}
	return v, nil
}

func (v version) less(o version) bool {
	return slices.Compare([]uint64{v.major, v.minor, v.patch}, []uint64{o.major, o.minor, o.patch}) < 0
}

// after is the smallest version that says a change of that level.
func (v version) after(level change.Level) version {
	switch level {
	case change.Same:
		return v
	case change.Patch:
		return version{v.major, v.minor, v.patch + 1}
	case change.Minor:
		return version{v.major, v.minor + 1, 0}
	default:
		return version{v.major + 1, 0, 0}
	}
}

// recorded reads the contract that was recorded; the error is fs.ErrNotExist if
// there is none.
func recorded(root string) (contract, version, error) {
	var c contract
	body, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(contractPath)))
	if err != nil {
		return c, version{}, err
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return c, version{}, fmt.Errorf("%s: %w", contractPath, err)
	}
	v, err := parseVersion(c.Version)
	if err != nil {
		return c, version{}, fmt.Errorf("%s: %w", contractPath, err)
	}
	return c, v, nil
}

// contractVersion is the file with the version alone, which programs are built with. There is none
// before a contract was recorded.
func contractVersion(root string) ([]output, error) {
	_, v, err := recorded(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return []output{{versionPath, v.line()}}, err
}

// versionPath is where the version lies that programs are built with.
const versionPath = "internal/build/contract"

func (v version) line() []byte { return []byte(v.String() + "\n") }

// current reads the contract as schema/files say it now.
func current(root string) (contract, error) {
	c := contract{Schemas: map[string]events.JSON{}}
	tree := os.DirFS(filepath.Join(root, "schema", "files"))
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		body, err := fs.ReadFile(tree, path)
		if err == nil {
			c.Schemas[path], err = change.Bare(body)
		}
		if err != nil {
			return fmt.Errorf("schema/files/%s: %w", path, err)
		}
		return nil
	})
	return c, err
}

// sideOf returns who writes the documents of the schema at a path below schema/files.
func sideOf(path string) change.Side {
	asked := strings.HasPrefix(path, "commands/") || strings.HasPrefix(path, "queries/") || strings.HasPrefix(path, "definitions/")
	for _, r := range schema.Resources() {
		asked = asked || r.Asked && path == "resources/"+r.Name+".json"
	}
	if asked {
		return change.Asked
	}
	return change.Answered
}

// changes says how far the contract moved, and in what.
func changes(before, after contract) (change.Level, []string) {
	level := change.Same
	var reasons []string
	all := maps.Clone(before.Schemas)
	if all == nil {
		all = map[string]events.JSON{}
	}
	maps.Copy(all, after.Schemas)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		one, was := before.Schemas[path]
		two, is := after.Schemas[path]
		switch {
		case !was:
			level = max(level, change.Minor)
			reasons = append(reasons, fmt.Sprintf("%s: new (%s)", path, change.Minor))
		case !is:
			level = change.Major
			reasons = append(reasons, fmt.Sprintf("%s: removed (%s)", path, change.Major))
		default:
			found, why := change.Compare(sideOf(path), one, two)
			level = max(level, found)
			for _, w := range why {
				reasons = append(reasons, path+"#"+w)
			}
		}
	}
	return level, reasons
}

func toRecord(v version) string { return "go run ./dev/generate -contract " + v.String() }

// checkContract says what of the contract changed and was not recorded.
func checkContract(root string) error {
	after, err := current(root)
	if err != nil {
		return err
	}
	before, v, err := recorded(root)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no contract is recorded in %s; record it: %s", contractPath, toRecord(version{major: 1}))
	}
	if err != nil {
		return err
	}
	level, reasons := changes(before, after)
	if level == change.Same {
		return nil
	}
	return fmt.Errorf("the contract is not %s any more; the change is %s:\n  %s\nif it is meant, record it: %s",
		v, level, strings.Join(reasons, "\n  "), toRecord(v.after(level)))
}

// recordContract writes the contract down under a version that says how far it
// moved, and refuses a smaller one.
func recordContract(out io.Writer, root, text string) error {
	to, err := parseVersion(text)
	if err != nil {
		return err
	}
	after, err := current(root)
	if err != nil {
		return err
	}
	before, v, err := recorded(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		level, reasons := changes(before, after)
		if least := v.after(level); to.less(least) {
			why := ""
			if level != change.Same {
				why = fmt.Sprintf("; the change is %s:\n  %s", level, strings.Join(reasons, "\n  "))
			}
			return fmt.Errorf("%s is too small after %s; the smallest version is %s%s", to, v, least, why)
		}
	}
	after.Version = to.String()
	fmt.Fprintf(out, "%s: %s\n", contractPath, to)
	if err := write(filepath.Join(root, filepath.FromSlash(contractPath)), after.lines()); err != nil {
		return err
	}
	return write(filepath.Join(root, filepath.FromSlash(versionPath)), to.line())
}

// lines writes one schema a line, so that a diff shows which changed.
func (c contract) lines() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n%q: %q,\n%q: {", "version", c.Version, "schemas")
	separator := "\n"
	for _, path := range slices.Sorted(maps.Keys(c.Schemas)) {
		fmt.Fprintf(&b, "%s%q: %s", separator, path, c.Schemas[path])
		separator = ",\n"
	}
	b.WriteString("\n}\n}\n")
	return b.Bytes()
}
