package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Mutant is one deliberate mistake. In a file of the folder mutants it is written as
//
//	= name-of-the-mistake: what it does
//	file runtime/turn.go
//	test ./runtime TestTurn|TestOther
//	-	the lines as they are in the file,
//	-	which occur there exactly once
//	+	the lines in their place
//
// Lines that begin with a space are kept: they show where a mistake is made that
// could stand in several places. Empty lines and lines that begin with # are skipped.
type Mutant struct {
	Name    string
	About   string // what it does
	File    string // that is changed, from the root
	Package string // whose tests should notice
	Run     string // the pattern of their names
	Old     string // occurs in the file exactly once
	New     string
}

// folder holds the lists of mutants, from the root.
const folder = "dev/mutate/mutants"

// Read returns the mutants that are listed in a repository, in the order of the files.
func Read(root fs.FS) ([]Mutant, error) {
	lists, err := fs.Glob(root, folder+"/*.txt")
	if err != nil {
		return nil, err
	}
	var all []Mutant
	named := map[string]bool{}
	for _, list := range lists {
		body, err := fs.ReadFile(root, list)
		if err != nil {
			return nil, err
		}
		some, err := parse(path.Base(list), string(body))
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			if named[m.Name] {
				return nil, fmt.Errorf("%s: there is another mutant %q; rename one", list, m.Name)
			}
			named[m.Name] = true
		}
		all = append(all, some...)
	}
	return all, nil
}

// parse reads one list.
func parse(name, body string) ([]Mutant, error) {
	var all []Mutant
	var old, changed []string
	var m *Mutant
	finish := func() error {
		if m == nil {
			return nil
		}
		m.Old, m.New = strings.Join(old, "\n"), strings.Join(changed, "\n")
		old, changed = nil, nil
		switch {
		case m.File == "" || m.Package == "":
			return fmt.Errorf("%s: the mutant %q needs a line %q and a line %q", name, m.Name, "file FILE", "test PACKAGE PATTERN")
		case m.Old == "" || m.Old == m.New:
			return fmt.Errorf("%s: the mutant %q changes nothing", name, m.Name)
		}
		return nil
	}
	for number, line := range strings.Split(body, "\n") {
		at := fmt.Sprintf("%s:%d", name, number+1)
		if title, ok := strings.CutPrefix(line, "= "); ok {
			if err := finish(); err != nil {
				return nil, err
			}
			own, about, _ := strings.Cut(title, ": ")
			if about == "" || strings.ContainsAny(own, " \t") {
				return nil, fmt.Errorf("%s: the title is %q; write it as %q", at, line, "= name: what it does")
			}
			all = append(all, Mutant{Name: own, About: about})
			m = &all[len(all)-1]
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if m == nil {
			return nil, fmt.Errorf("%s: %q stands before the first title", at, line)
		}
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line[0] == '-':
			old = append(old, line[1:])
		case line[0] == '+':
			changed = append(changed, line[1:])
		case line[0] == ' ':
			old, changed = append(old, line[1:]), append(changed, line[1:])
		case word == "file":
			m.File = rest
		case word == "test":
			var ok bool
			if m.Package, m.Run, ok = strings.Cut(rest, " "); !ok {
				return nil, fmt.Errorf("%s: %q needs a package and a pattern", at, line)
			}
			if _, err := regexp.Compile(m.Run); err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
		default:
			return nil, fmt.Errorf("%s: %q is no line of a mutant", at, line)
		}
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return all, nil
}

// Apply returns the file with the mistake in it.
func (m Mutant) Apply(root fs.FS) ([]byte, error) {
	body, err := fs.ReadFile(root, m.File)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(body), m.Old); n != 1 {
		return nil, fmt.Errorf("%s: the old text of %q occurs %d times, and not once; write it as the code is now", m.File, m.Name, n)
	}
	return []byte(strings.Replace(string(body), m.Old, m.New, 1)), nil
}
