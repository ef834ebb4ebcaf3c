package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// requirementsSource is the hand-written part of docs/requirements.md: its prose,
// and every requirement with its id.
//
//go:embed requirements.md
var requirementsSource string

// requirementsPath is where it lies.
const requirementsPath = "internal/generate/requirements.md"

// requirementID is an id, or a range of ids with two dots between.
var requirementID = regexp.MustCompile(`\b(EK|SA|AG|AM|C)-([0-9]+)(?:\.\.(?:(EK|SA|AG|AM|C)-)?([0-9]+))?\b`)

// requirementLine is the first line of a requirement.
var requirementLine = regexp.MustCompile(`^- ((?:EK|SA|AG|AM|C)-[0-9]+) (.+)$`)

// summaryMark is the line of the source in whose place the summary comes.
const summaryMark = "<!-- summary -->"

// block is a piece of the source: a requirement, or a line that is copied.
type block struct {
	id      string // "" of a line that is copied
	text    string
	settled string // of a conflict: what was decided
}

// source is a group of requirements that share a prefix.
type source struct {
	prefix, title string
	count         int
}

// requirements are the parsed source.
type requirements struct {
	blocks  []block
	sources []source
	byID    map[string]bool
}

// parseRequirements reads the source. A requirement begins with "- ID "; its other
// lines are indented by two spaces, and one that begins with "-> " says how a
// conflict was settled. Ids count from 1 without a gap, under a heading of the second
// level "PREFIX: title".
func parseRequirements(text string) (requirements, error) {
	r := requirements{byID: map[string]bool{}}
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		m := requirementLine.FindStringSubmatch(line)
		rest, indented := strings.CutPrefix(line, "  ")
		last := len(r.blocks) - 1
		switch {
		case m != nil:
			if err := r.add(m[1]); err != nil {
				return r, fmt.Errorf("%s:%d: %w", requirementsPath, n+1, err)
			}
			r.blocks = append(r.blocks, block{id: m[1], text: m[2]})
		case indented && last >= 0 && r.blocks[last].id != "":
			b := &r.blocks[last]
			if decided, begins := strings.CutPrefix(rest, "-> "); begins {
				b.settled = decided
			} else if b.settled != "" {
				b.settled += " " + rest
			} else {
				b.text += " " + rest
			}
		default:
			r.blocks = append(r.blocks, block{text: line})
			if heading, is := strings.CutPrefix(line, "## "); is {
				prefix, title, named := strings.Cut(heading, ": ")
				if named {
					r.sources = append(r.sources, source{prefix: prefix, title: title})
				}
			}
		}
	}
	return r, nil
}

// add counts a requirement, whose id must follow the last one of its source.
func (r *requirements) add(id string) error {
	if len(r.sources) == 0 {
		return fmt.Errorf("%s stands before the first heading of a source", id)
	}
	s := &r.sources[len(r.sources)-1]
	s.count++
	if want := s.prefix + "-" + strconv.Itoa(s.count); id != want {
		return fmt.Errorf("%s stands where %s is expected", id, want)
	}
	r.byID[id] = true
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
