// Package repository finds the files of the repository for the tests of this module that read them.
//
// The go command answers a test from its cache unless a file of the test's own module that it has
// read, or a variable that it has asked for, has changed. The product and its pages are another
// module. So gotest sets [Variable] to a [Digest] of them, and [Root] asks for it. Without gotest,
// use -count=1.
package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Variable is the variable of the environment with the digest of the repository.
const Variable = "SKEIN_REPOSITORY"

// Root returns the root of the repository, for a package two folders below it.
func Root() string {
	_, _ = os.LookupEnv(Variable)
	return filepath.Join("..", "..")
}

// Digest returns a digest of the names, sizes and times of change of all files below root, but for
// what a build, a server or another program has written there.
func Digest(root string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "node_modules", "skein-data"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
