// Command site writes the sources of the documentation's site into a folder: the pages that
// navigation.json names, the reference pages of what the program publishes itself, llms.txt and
// llms-full.txt, and the project that makes a site of them with VitePress.
//
//	go run ./dev/site DIR
package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// project is the project of VitePress.
//
//go:embed all:vitepress
var project embed.FS

// navigation names all pages, in their order.
//
//go:embed navigation.json
var navigation []byte

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "site: name the folder to write: go run ./dev/site DIR")
		os.Exit(2)
	}
	root, err := repositoryRoot()
	if err == nil {
		err = write(root, os.Args[1])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "site: %v\n", err)
		os.Exit(1)
	}
}

// repositoryRoot finds the root of the repository above the working directory.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("there is no go.work above this folder: run it in a checkout")
		}
	}
	return "", err
}

// write writes the sources of the site into a folder. Packages that npm installed there stay.
func write(root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() == "node_modules" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	files, err := fs.Sub(project, "vitepress")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return err
	}
	s, err := readSite(root)
	if err != nil {
		return err
	}
	return s.write(dir)
}
