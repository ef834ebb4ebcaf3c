package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// walk visits the files of the repository by their paths from its root, and leaves
// out what is not part of it: hidden folders, what a build or a server writes, and
// what other programs install.
func walk(root fs.FS, visit func(name string) error) error {
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") && base != ".ci" || slices.Contains([]string{"bin", "skein-data", "node_modules"}, base)) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return visit(name)
	})
}

// largestText is what a text of the repository has at most. Longer files are data.
const largestText = 4 << 20

// checkReferences returns an error that names each id, in any file below a root, that
// is no requirement.
func checkReferences(root string) error {
	tree := os.DirFS(root)
	wanted, err := readRequirements(tree)
	if err != nil {
		return err
	}
	var wrong []error
	err = walk(tree, func(name string) error {
		info, err := fs.Stat(tree, name)
		if err != nil || info.Size() > largestText {
			return err
		}
		body, err := fs.ReadFile(tree, name)
		if err != nil || bytes.IndexByte(body, 0) >= 0 {
			return err
		}
		wrong = append(wrong, unresolved(name, string(body), wanted)...)
		return nil
	})
	return errors.Join(append(wrong, err)...)
}

// unresolved names each id of a text that is no requirement.
func unresolved(name, text string, wanted requirements) (wrong []error) {
	for n, line := range strings.Split(text, "\n") {
		ids, err := citedIDs(line)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", name, n+1, err))
		}
		for _, id := range ids {
			if !slices.Contains(wanted, id) {
				wrong = append(wrong, fmt.Errorf("%s:%d: %s is not in %s; correct the id, or add the requirement", name, n+1, id, requirementsPath))
			}
		}
	}
	return wrong
}
