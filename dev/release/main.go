// Command release makes what a release of Skein has besides its programs.
//
//	go run ./dev/release docs DIR                       # man pages and shell completions
//	go run ./dev/release root PROGRAM DIR               # the files of the image
//	go run ./dev/release image VERSION FILE ARCH=PROGRAM...   # the image, of several architectures
//
// It runs on any system, without root and without an engine. Its tests build, install and
// run what a release has; they need Debian's dpkg.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// errUsage tells what there is to do.
var errUsage = errors.New("use docs DIR, root PROGRAM DIR, or image VERSION FILE and ARCH=PROGRAM for each architecture")

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "docs":
		return writeDocs(args[1])
	case len(args) == 3 && args[0] == "root":
		return writeRoot(args[1], args[2])
	case len(args) > 3 && args[0] == "image":
		programs := map[string]string{}
		for _, arg := range args[3:] {
			arch, program, ok := strings.Cut(arg, "=")
			if !ok {
				return fmt.Errorf("%q is not ARCH=PROGRAM", arg)
			}
			programs[arch] = program
		}
		return writeImage(args[1], args[2], programs)
	}
	return errUsage
}
