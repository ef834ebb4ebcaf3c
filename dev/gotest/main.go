// Command gotest runs go test, prints what it prints, and before its last line lists
// the tests that took longest, and those that were skipped, with their reasons: what nobody sees is
// not shown to work.
//
//	go run ./dev/gotest [-target NAME] [-only FILES | -without FILES] [-programs FOLDER] -- [ARGUMENTS of go test]
//
// FILES, separated by commas, list tests, one a line, as "FOLDER NAME": -only runs these, -without
// all others.
// A test whose reason says that `make NAME runs it` is not listed, and fails in that
// target: it would run nowhere. It exits as go test does. The arguments end with the packages,
// of which those with the most tests begin first. In FOLDER it keeps the programs of the tests,
// which go test does not link again until they change.
//
// Where the system has a folder in memory with enough space, and TMPDIR is not set, the
// temporary files of the tests are there.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/skein-threads/skein/dev/repository"
)

func main() {
	target := flag.String("target", "", "the `NAME` of the make target that runs the tests")
	only := flag.String("only", "", "run the tests that these `FILES` list")
	without := flag.String("without", "", "run the tests that these `FILES` do not list")
	programs := flag.String("programs", "", "keep the programs of the tests in this `FOLDER`")
	flag.Parse()
	arguments, err := choose(*only, *without, flag.Args())
	var runs [][]string
	if err == nil {
		runs, err = plan(".", *programs, arguments)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(2)
	}
	os.Exit(runThere(*target, runs))
}

// runThere runs go test here, with temporary files in memory if it can.
func runThere(target string, runs [][]string) int {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // which ends go test, and then this
	dir, remove := inMemory()
	defer remove()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		remove()
		os.Exit(1)
	}()
	digest, err := repository.Digest(".")
	if err == nil {
		err = os.Setenv(repository.Variable, digest)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	}
	if dir != "" {
		if err := os.Setenv("TMPDIR", dir); err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			return 2
		}
	}
	code, err := run(os.Stdout, os.Stderr, target, ".", runs...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	return code
}

// run runs go test in a folder, once for each of the lists of arguments, at the same time.
// An interrupt reaches it by itself.
func run(out, errs io.Writer, target, dir string, runs ...[]string) (code int, err error) {
	r := &reader{out: out, target: target, packages: map[string]*report{}}
	results := make(chan result)
	for _, arguments := range runs {
		go func() { results <- r.goTest(errs, dir, arguments) }()
	}
	for range runs {
		of := <-results
		code, err = max(code, of.code), errors.Join(err, of.err)
	}
	r.end(code != 0 || err != nil || len(r.lost) > 0)
	switch {
	case code == 0 && err != nil:
		return 2, err
	case code == 0 && len(r.lost) > 0:
		return 1, fmt.Errorf("%d tests say that make %s runs them, and it skipped them", len(r.lost), target)
	}
	return code, err
}

// result is how a run of go test has ended.
type result struct {
	code int
	err  error // other than that it failed
}

// goTest runs go test once, and reads what it says.
func (r *reader) goTest(errs io.Writer, dir string, arguments []string) result {
	command := exec.Command("go", append([]string{"test", "-json"}, arguments...)...)
	command.Dir, command.Stderr = dir, errs
	from, err := command.StdoutPipe()
	if err != nil {
		return result{2, err}
	}
	if err := command.Start(); err != nil {
		return result{2, err}
	}
	readErr := r.read(from)
	err = command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return result{max(exit.ExitCode(), 1), readErr}
	}
	return result{0, errors.Join(err, readErr)}
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // in seconds
}

// reader turns the events of go test into what it prints without them.
type reader struct {
	out    io.Writer
	target string

	mu        sync.Mutex // guards what follows
	packages  map[string]*report
	slow      []event // tests that took long
	skipped   []string
	elsewhere int      // how many of the skipped tests another target runs
	lost      []string // those that this target should run
	held      string   // the last line of a package, which may be the last of all
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
			r.mu.Lock()
			r.take(raw)
			r.mu.Unlock()
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
		if e.Elapsed >= slowFrom && !strings.Contains(e.Test, "/") {
			r.slow = append(r.slow, e)
		}
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

// runsIt finds in the reason of a skip the target that runs the test.
var runsIt = regexp.MustCompile(`make (test[a-z-]*) runs it`)

// skip notes a test that was skipped, with what it says.
func (r *reader) skip(e event, p *report) {
	var why []string
	for _, l := range p.output[e.Test] {
		if text := strings.TrimSpace(l.text); text != "" && !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
			why = append(why, text)
		}
	}
	line := fmt.Sprintf("skipped\t%s %s: %s\n", e.Package, e.Test, strings.Join(why, " "))
	switch of := runsIt.FindStringSubmatch(line); {
	case of == nil:
		r.skipped = append(r.skipped, line)
	case of[1] == r.target:
		r.skipped, r.lost = append(r.skipped, line), append(r.lost, e.Test)
	default:
		r.elsewhere++
	}
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

// slowFrom is from how many seconds on a test takes long, and slowMost how many of them are listed.
const (
	slowFrom = 15
	slowMost = 40
)

// listSlow lists the tests that took longest: what to look at when the whole takes too long.
func (r *reader) listSlow() {
	slices.SortFunc(r.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range r.slow[:min(len(r.slow), slowMost)] {
		fmt.Fprintf(r.out, "slow\t%.0f s\t%s %s\n", e.Elapsed, e.Package, e.Test)
	}
}

// end lists what took long and what was skipped, and prints what was held.
func (r *reader) end(failed bool) {
	held := r.held
	r.held = ""
	for _, p := range r.packages { // it was killed
		r.packageOver(p, true)
	}
	r.print("")
	r.listSlow()
	slices.Sort(r.skipped)
	for _, s := range r.skipped {
		fmt.Fprint(r.out, s)
	}
	if len(r.skipped) > 0 {
		fmt.Fprintf(r.out, "skipped\t%d tests, for the reasons above\n", len(r.skipped))
	}
	if r.elsewhere > 0 {
		fmt.Fprintf(r.out, "skipped\t%d tests that other targets run\n", r.elsewhere)
	}
	fmt.Fprint(r.out, held)
	if failed {
		fmt.Fprintln(r.out, "FAIL")
	}
}
