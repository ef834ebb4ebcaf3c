package clients_test

import (
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// The site of the documentation is built, and what it says is there: pages, anchors, files of the
// repository, and the pages that llms.txt names. A browser loads nothing from elsewhere.
func TestSite(t *testing.T) {
	_, npm := findNode(t)
	dir := t.TempDir()
	run := func(in, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	run(".", "go", "run", "../site", dir)
	npmInstall(t, npm, dir)
	run(dir, npm, "run", "build")

	built := os.DirFS(filepath.Join(dir, "dist"))
	pages := map[string]string{}
	err := fs.WalkDir(built, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(built, name)
		pages[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 60 || pages["404.html"] == "" || pages["cli.html"] == "" || pages["routes.html"] == "" || pages["configuration.html"] == "" {
		t.Errorf("the site has only the pages %q", slices.Sorted(maps.Keys(pages)))
	}
	if found, err := fs.Glob(built, "assets/chunks/@localSearchIndex*"); err != nil || len(found) == 0 {
		t.Errorf("the site has no index to search: %v", err)
	}
	here := func(name string) bool {
		info, err := fs.Stat(built, name)
		return err == nil && !info.IsDir()
	}
	inRepository := func(name string) bool {
		_, err := os.Stat(filepath.Join(repository.Root(), filepath.FromSlash(name)))
		return err == nil
	}
	for _, problem := range deadLinks(pages, here, inRepository) {
		t.Error(problem)
	}
	index, err := fs.ReadFile(built, "llms.txt")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := fs.ReadFile(built, "llms-full.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range unlisted(pages, string(index), string(whole), here) {
		t.Error(problem)
	}
}

// hostOfSources is where the files of the repository are.
const hostOfSources = "https://github.com/skein-threads/skein/"

// deadLinks finds links of pages to pages, files and anchors that are not there, and what a browser
// would load from another host.
func deadLinks(pages map[string]string, here, inRepository func(name string) bool) (problems []string) {
	var (
		link   = regexp.MustCompile(`<(?:a|img) [^>]*?(?:href|src)="([^"]*)"`)
		loaded = regexp.MustCompile(`<(?:script|img|link|iframe)[^>]*? (?:src|href)="((?:https?:)?//[^"]*)"`)
		anchor = regexp.MustCompile(`\sid="([^"]+)"`)
	)
	anchors := map[string]map[string]bool{}
	for name, text := range pages {
		anchors[name] = map[string]bool{}
		for _, m := range anchor.FindAllStringSubmatch(text, -1) {
			anchors[name][html.UnescapeString(m[1])] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, m := range loaded.FindAllStringSubmatch(pages[name], -1) {
			problems = append(problems, name+" loads "+m[1]+"; serve it from the site")
		}
		known := map[string]bool{}
		for _, m := range link.FindAllStringSubmatch(pages[name], -1) {
			to := html.UnescapeString(m[1])
			if known[to] {
				continue
			}
			known[to] = true
			if problem := dead(name, to, anchors, here, inRepository); problem != "" {
				problems = append(problems, fmt.Sprintf("%s links to %s: %s", name, to, problem))
			}
		}
	}
	return problems
}

// dead says what is wrong with a link of a page, or nothing.
func dead(page, to string, anchors map[string]map[string]bool, here, inRepository func(name string) bool) string {
	if file, is := strings.CutPrefix(to, hostOfSources); is {
		file = strings.TrimPrefix(strings.TrimPrefix(file, "blob/main/"), "tree/main/")
		file, _, _ = strings.Cut(file, "#")
		if !strings.HasPrefix(file, "releases") && !inRepository(file) {
			return "the repository has no " + file
		}
		return ""
	}
	address, err := url.Parse(to)
	if err != nil {
		return err.Error()
	}
	if address.IsAbs() {
		return ""
	}
	name := path.Join(path.Dir(page), address.Path)
	switch {
	case address.Path == "":
		name = page
	case strings.HasPrefix(address.Path, "/"):
		name = strings.TrimPrefix(address.Path, "/")
	}
	if name == "" {
		name = "index.html"
	}
	if path.Ext(name) == "" {
		name += ".html"
	}
	if !here(name) {
		return "there is no " + name
	}
	if address.Fragment != "" && !anchors[name][address.Fragment] {
		return name + " has no such anchor"
	}
	return ""
}

// unlisted finds pages that the files for models do not have, and what they have and the site does
// not.
func unlisted(pages map[string]string, index, whole string, here func(name string) bool) (problems []string) {
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`\(/([^)]+\.md)\)`).FindAllStringSubmatch(index, -1) {
		listed[m[1]] = true
		if !here(m[1]) {
			problems = append(problems, "llms.txt names "+m[1]+", and the site has none")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		source := strings.TrimSuffix(name, ".html") + ".md"
		if name == "index.html" || name == "404.html" {
			continue
		}
		if !listed[source] {
			problems = append(problems, "llms.txt lacks "+source)
		}
		if !strings.Contains(whole, "<!-- /"+source+" -->") {
			problems = append(problems, "llms-full.txt lacks "+source)
		}
	}
	return problems
}

// What TestSite looks for is found.
func TestSite_Bites(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"a.html":       `<h1 id="top">A</h1><a class="x" href="/b.html#there">B</a><a href="#top">top</a><a href="https://github.com/skein-threads/skein/blob/main/there.go#L1">c</a>`,
		"b.html":       `<h2 class="y" id="there">B</h2><script src="/assets/x.js"></script><a href="https://example.org/">out</a>`,
		"broken.html":  `<a href="/gone.html">1</a><img alt="x" src="/images/gone.png"><a href="/b.html#gone">2</a><a href="#gone">3</a><a href="https://github.com/skein-threads/skein/blob/main/gone.go">4</a>`,
		"foreign.html": `<link rel="stylesheet" href="https://fonts.example/x.css"><script async src="//cdn.example/x.js"></script>`,
	}
	here := func(name string) bool { return pages[name] != "" || name == "a.md" || name == "b.md" }
	got := deadLinks(pages, here, func(name string) bool { return name == "there.go" })
	got = append(got, unlisted(pages, "[A](/a.md) [B](/b.md) [X](/x.md)", "<!-- /a.md --><!-- /foreign.md -->", here)...)
	want := []string{
		"broken.html links to /gone.html: there is no gone.html",
		"broken.html links to /images/gone.png: there is no images/gone.png",
		"broken.html links to /b.html#gone: b.html has no such anchor",
		"broken.html links to #gone: broken.html has no such anchor",
		"broken.html links to https://github.com/skein-threads/skein/blob/main/gone.go: the repository has no gone.go",
		"foreign.html loads https://fonts.example/x.css; serve it from the site",
		"foreign.html loads //cdn.example/x.js; serve it from the site",
		"llms.txt names x.md, and the site has none",
		"llms-full.txt lacks b.md",
		"llms.txt lacks broken.md", "llms-full.txt lacks broken.md",
		"llms.txt lacks foreign.md",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
