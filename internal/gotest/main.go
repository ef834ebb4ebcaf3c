// Command gotest runs go test, prints what it prints, and before its last line lists
// the tests that were skipped, with their reasons: what nobody sees is not shown to
// work.
//
//	go run ./internal/gotest [-ran REGEXP] -- [ARGUMENTS of go test]
//
// The tests whose names match -ran are not listed: they were run before, in another
// way. It exits as go test does.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	ran := flag.String("ran", "^$", "tests whose name matches this `REGEXP` were run before, and are not listed")
	flag.Parse()
	pattern, err := regexp.Compile(*ran)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest: -ran:", err)
		os.Exit(2)
	}
	code, err := run(os.Stdout, os.Stderr, pattern, ".", flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	os.Exit(code)
}

// run runs go test in a folder. An interrupt reaches it by itself.
func run(out, errs io.Writer, ran *regexp.Regexp, dir string, arguments []string) (code int, err error) {
	command := exec.Command("go", append([]string{"test", "-json"}, arguments...)...)
	command.Dir, command.Stderr = dir, errs
	from, err := command.StdoutPipe()
	if err != nil {
		return 2, err
	}
	if err := command.Start(); err != nil {
		return 2, err
	}
	r := &reader{out: out, ran: ran, packages: map[string]*report{}}
	readErr := r.read(from)
	err = command.Wait()
	r.end(err != nil)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), readErr
	}
	if err = errors.Join(err, readErr); err != nil {
		return 2, err
	}
	return 0, nil
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// reader turns the events of go test into what it prints without them.
type reader struct {
	out      io.Writer
	ran      *regexp.Regexp
	packages map[string]*report
	skipped  []string
	held     string // the last line of a package, which may be the last of all
}

// report is what is known of a package that is under test.
type report struct {
	lines  int
	own    []line            // of no test
	output map[string][]line // by test, while it has not passed
}

type line struct {
	n    int
	text string
}

func (r *reader) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		raw, err := lines.ReadBytes('\n')
		if len(raw) > 0 {
			r.take(raw)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) take(raw []byte) {
	var e event
	if !bytes.HasPrefix(raw, []byte("{")) || json.Unmarshal(raw, &e) != nil {
		r.print(string(raw)) // go test itself, or a program that it ran
		return
	}
	if e.Action == "build-output" {
		r.print(e.Output)
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &report{output: map[string][]line{}}
		r.packages[e.Package] = p
	}
	switch {
	case e.Action == "output":
		p.add(e)
	case e.Test != "" && e.Action == "skip":
		r.skip(e, p)
		delete(p.output, e.Test)
	case e.Test != "" && e.Action == "pass":
		delete(p.output, e.Test)
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		r.packageOver(p, e.Action == "fail")
		delete(r.packages, e.Package)
	}
}

func (p *report) add(e event) {
	p.lines++
	l := line{p.lines, e.Output}
	if e.Test == "" {
		p.own = append(p.own, l)
	} else {
		p.output[e.Test] = append(p.output[e.Test], l)
	}
}

// skip notes a test that was skipped, with what it says.
func (r *reader) skip(e event, p *report) {
	if r.ran.MatchString(e.Test) {
		return
	}
	var why []string
	for _, l := range p.output[e.Test] {
		if text := strings.TrimSpace(l.text); text != "" && !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
			why = append(why, text)
		}
	}
	r.skipped = append(r.skipped, fmt.Sprintf("skipped\t%s %s: %s\n", e.Package, e.Test, strings.Join(why, " ")))
}

// packageOver prints what go test prints of a package: its result and, if it
// failed, what the tests said that did not pass.
func (r *reader) packageOver(p *report, failed bool) {
	said := p.own
	if failed {
		for _, lines := range p.output {
			said = append(said, lines...)
		}
		slices.SortFunc(said, func(a, b line) int { return a.n - b.n })
	}
	for _, l := range said {
		switch {
		case strings.HasPrefix(l.text, "ok  \t"), strings.HasPrefix(l.text, "?   \t"), strings.HasPrefix(l.text, "FAIL\t"):
			r.print("")
			r.held = l.text
		case failed && !strings.HasPrefix(l.text, "=== "):
			r.print(l.text)
		}
	}
}

// print prints what was held, and a text after it.
func (r *reader) print(text string) {
	fmt.Fprint(r.out, r.held, text)
	r.held = ""
}

// end lists what was skipped, and prints what was held.
func (r *reader) end(failed bool) {
	held := r.held
	r.held = ""
	for _, p := range r.packages { // it was killed
		r.packageOver(p, true)
	}
	r.print("")
	slices.Sort(r.skipped)
	for _, s := range r.skipped {
		fmt.Fprint(r.out, s)
	}
	if len(r.skipped) > 0 {
		fmt.Fprintf(r.out, "skipped\t%d tests, for the reasons above\n", len(r.skipped))
	}
	fmt.Fprint(r.out, held)
	if failed {
		fmt.Fprintln(r.out, "FAIL")
	}
}
