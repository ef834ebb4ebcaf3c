package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/cmd/skein/user"
)

// writeDocs writes a man page of each command into DIR/man, and the completions of each shell into
// DIR/completions.
func writeDocs(dir string) error {
	app := cli.New()
	root := app.Root(app.Verbs(), user.Verbs(app), operator.Verbs(app))
	root.DisableAutoGenTag = true
	pages, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, folder := range []string{pages, completions} {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	// The day of the pages is fixed, so that the same sources make the same package.
	day := time.Unix(0, 0).UTC()
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Skein", Manual: "Skein", Date: &day}, pages); err != nil {
		return err
	}
	if err := compress(pages); err != nil {
		return err
	}
	var bash, zsh, fish bytes.Buffer
	if err := root.GenBashCompletionV2(&bash, true); err != nil {
		return err
	}
	if err := root.GenZshCompletion(&zsh); err != nil {
		return err
	}
	if err := root.GenFishCompletion(&fish, true); err != nil {
		return err
	}
	for name, text := range map[string]*bytes.Buffer{"skein.bash": &bash, "_skein": &zsh, "skein.fish": &fish} {
		if err := os.WriteFile(filepath.Join(completions, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compress replaces each file of a folder by a compressed one, as distributions have man pages.
func compress(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(path+".gz", out.Bytes(), 0o644); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
