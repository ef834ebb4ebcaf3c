package events

import (
	"os"
	"strings"
	"testing"
)

// The package's comment says where things are: the files that it names exist, and stand in one group.
// It need not name the file of a new event.
func TestDoc_NamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "# Where things are")
	list, _, _ = strings.Cut(list, "\n// # ")
	named := map[string]int{}
	for line := range strings.Lines(list) {
		if row, ok := strings.CutPrefix(line, "//\t"); ok && len(row) > 27 {
			for _, name := range strings.Fields(row[27:]) {
				named[name]++
			}
		}
	}
	if len(named) < 40 {
		t.Errorf("only %d files were found in doc.go", len(named))
	}
	for name, times := range named {
		if times > 1 {
			t.Errorf("doc.go names %s %d times", name, times)
		}
		if _, err := os.Stat(name + ".go"); err != nil {
			t.Errorf("doc.go names %s: %v", name, err)
		}
	}
}
