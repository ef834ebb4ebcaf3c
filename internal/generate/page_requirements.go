package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// requirementsPage writes the requirements with the tests that cite each.
func requirementsPage(root string) ([]byte, error) {
	wanted, err := parseRequirements(requirementsSource)
	if err != nil {
		return nil, err
	}
	found, err := findClaims(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	p := &page{}
	p.WriteString("<!-- Written by internal/generate from " + requirementsPath + " and the tests. Change them, then run make generate. -->\n\n")
	files := map[string]bool{}
	for _, b := range wanted.blocks {
		switch {
		case b.text == summaryMark:
			p.summary(wanted, found)
		case b.id == "":
			fmt.Fprintln(p, b.text)
		default:
			p.requirement(b, found[b.id])
			for _, c := range found[b.id] {
				files[c.file] = true
			}
		}
	}
	p.WriteByte('\n')
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(p, "[%s]: ../%s\n", file, file)
	}
	return p.Bytes(), nil
}

// summary writes how many requirements of each source tests cite.
func (p *page) summary(wanted requirements, found claims) {
	var rows [][]string
	row := func(name string, all, shown int) {
		rows = append(rows, []string{name, strconv.Itoa(all), strconv.Itoa(shown), strconv.Itoa(all - shown)})
	}
	total, totalShown := 0, 0
	for _, s := range wanted.sources {
		shown := 0
		for n := range s.count {
			if len(found[s.prefix+"-"+strconv.Itoa(n+1)]) > 0 {
				shown++
			}
		}
		row(s.prefix+": "+s.title, s.count, shown)
		total, totalShown = total+s.count, totalShown+shown
	}
	row("all", total, totalShown)
	p.table([]string{"source", "lines", "cited by tests", "not shown yet"}, rows)
	p.Truncate(p.Len() - 1) // the source has the empty line after it
}

// requirement writes one of them, as an item of a list.
func (p *page) requirement(b block, cited []claim) {
	p.item("- ", "**"+b.id+"** "+b.text)
	if b.settled != "" {
		p.item("  - ", "Settled: "+b.settled)
	}
	if len(cited) == 0 {
		p.item("  - ", "*Not shown yet.*")
		return
	}
	var files []string
	tests := map[string][]string{}
	for _, c := range cited {
		if !slices.Contains(files, c.file) {
			files = append(files, c.file)
		}
		if c.test != "" {
			tests[c.file] = append(tests[c.file], "`"+c.test+"`")
		}
	}
	var texts []string
	for _, file := range files {
		if names := tests[file]; len(names) > 0 {
			texts = append(texts, strings.Join(names, ", ")+" in ["+file+"]")
		} else {
			texts = append(texts, "["+file+"]")
		}
	}
	p.item("  - ", strings.Join(texts, "; "))
}
