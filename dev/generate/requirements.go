package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// requirementsPath is the list of all requirements.
const requirementsPath = "dev/generate/requirements.txt"

// requirementID is an id, or a range of ids with two dots between.
var requirementID = regexp.MustCompile(`\b(EK|SA|AG|AM|C)-([0-9]+)(?:\.\.(?:(EK|SA|AG|AM|C)-)?([0-9]+))?\b`)

// requirementLine is the first line of a requirement.
var requirementLine = regexp.MustCompile(`^- ((?:EK|SA|AG|AM|C)-[0-9]+) (.+)$`)

// requirements are the ids of the list, in its order.
type requirements []string

// readRequirements reads the list below a root.
func readRequirements(root fs.FS) (requirements, error) {
	text, err := fs.ReadFile(root, requirementsPath)
	if err != nil {
		return nil, err
	}
	return parseRequirements(string(text))
}

// parseRequirements reads the list. A requirement begins with "- ID ". Ids count from 1 without a
// gap, under a heading of the second level "PREFIX: title".
func parseRequirements(text string) (requirements, error) {
	var r requirements
	prefix, count := "", 0
	for n, line := range strings.Split(text, "\n") {
		if heading, is := strings.CutPrefix(line, "## "); is {
			if before, _, named := strings.Cut(heading, ": "); named {
				prefix, count = before, 0
			}
			continue
		}
		m := requirementLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		count++
		if want := fmt.Sprintf("%s-%d", prefix, count); m[1] != want {
			return nil, fmt.Errorf("%s:%d: %s stands where %q is expected", requirementsPath, n+1, m[1], want)
		}
		r = append(r, m[1])
	}
	return r, nil
}

// listCited lists the tests that cite each requirement whose id matches.
func listCited(out io.Writer, root, pattern string) error {
	tree := os.DirFS(root)
	matches, err := regexp.Compile("^(?:" + pattern + ")")
	if err != nil {
		return fmt.Errorf("-cited: %w", err)
	}
	wanted, err := readRequirements(tree)
	if err != nil {
		return err
	}
	found, err := findClaims(tree)
	if err != nil {
		return err
	}
	for _, id := range wanted {
		if !matches.MatchString(id) {
			continue
		}
		fmt.Fprintln(out, id)
		for _, c := range found[id] {
			fmt.Fprintln(out, " ", strings.TrimSpace(c.file+" "+c.test))
		}
	}
	return nil
}

// citedIDs returns the ids that a text cites, ranges spelled out. A range that runs
// backwards, or from one source to another, is an error.
func citedIDs(text string) ([]string, error) {
	var ids []string
	for _, m := range requirementID.FindAllStringSubmatch(text, -1) {
		if m[4] == "" {
			ids = append(ids, m[1]+"-"+m[2])
			continue
		}
		from, err := strconv.Atoi(m[2])
		if err != nil {
			return ids, fmt.Errorf("%s is no range of ids: %w", m[0], err)
		}
		to, err := strconv.Atoi(m[4])
		if err != nil || to <= from || to-from > 1000 || m[3] != "" && m[3] != m[1] {
			return ids, fmt.Errorf("%s is no range of ids", m[0])
		}
		for n := from; n <= to; n++ {
			ids = append(ids, m[1]+"-"+strconv.Itoa(n))
		}
	}
	return ids, nil
}
