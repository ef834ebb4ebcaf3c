package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/rest"
)

// sources is where the files of the repository are that are no pages.
const sources = "https://github.com/skein-threads/skein"

// linkTarget is where a link of Markdown leads to.
var linkTarget = regexp.MustCompile(`\]\([^)\s]+\)`)

// site is all pages.
type site struct {
	root     string
	sections []section
	pages    []page // in the order of the navigation
}

// section is a part of the navigation.
type section struct {
	Text  string   `json:"text"`
	Pages []string `json:"pages"` // as the repository names them
}

// page is a page of the site.
type page struct {
	source string // in the repository; of a generated page as the navigation names it
	name   string // on the site, without an ending: threads, start/go
	title  string
	text   string // Markdown whose links are those of the site
}

// readSite reads the pages that the navigation names, and fails where a page of docs is not one of
// them.
func readSite(root string) (*site, error) {
	s := &site{root: root}
	if err := json.Unmarshal(navigation, &s.sections); err != nil {
		return nil, fmt.Errorf("navigation.json: %w", err)
	}
	generated, err := generatedPages()
	if err != nil {
		return nil, err
	}
	for _, section := range s.sections {
		for _, source := range section.Pages {
			text, written := generated[source]
			if !written {
				raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(source)))
				if err != nil {
					return nil, fmt.Errorf("navigation.json: %w", err)
				}
				text = string(raw)
			}
			p := page{source: source, name: siteName(source), title: title(text), text: text}
			if p.title == "" {
				return nil, fmt.Errorf("%s has no title; begin it with # and the title", source)
			}
			s.pages = append(s.pages, p)
		}
	}
	if err := s.missing(); err != nil {
		return nil, err
	}
	for i := range s.pages {
		s.pages[i].text = fenced(s.relink(s.pages[i]))
	}
	return s, nil
}

// missing returns an error with the pages of docs that the navigation does not name.
func (s *site) missing() error {
	var problems []error
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		for _, file := range found {
			name, err := filepath.Rel(s.root, file)
			if err != nil {
				return err
			}
			if _, known := s.page(filepath.ToSlash(name)); !known {
				problems = append(problems, fmt.Errorf("%s is in no navigation; name it in dev/site/navigation.json", name))
			}
		}
	}
	return errors.Join(problems...)
}

// page returns the page of a source.
func (s *site) page(source string) (page, bool) {
	i := slices.IndexFunc(s.pages, func(p page) bool { return p.source == source })
	if i < 0 {
		return page{}, false
	}
	return s.pages[i], true
}

// siteName returns what the site calls a page.
func siteName(source string) string {
	name, inDocs := strings.CutPrefix(source, "docs/")
	name = strings.TrimSuffix(name, ".md")
	if inDocs {
		return name
	}
	return strings.ToLower(strings.TrimSuffix(name, "/README"))
}

// title returns the heading of a page.
func title(text string) string {
	for line := range strings.Lines(text) {
		if heading, is := strings.CutPrefix(line, "# "); is {
			return strings.TrimSpace(heading)
		}
	}
	return ""
}

// write writes the pages, the navigation and what is served as it is.
func (s *site) write(dir string) error {
	files := map[string]string{"public/llms.txt": s.index(), "public/llms-full.txt": s.whole()}
	for _, p := range s.pages {
		files[p.name+".md"] = p.text
		files["public/"+p.name+".md"] = p.text
	}
	shown, err := s.sidebar()
	if err != nil {
		return err
	}
	files[".vitepress/navigation.json"] = string(shown)
	description, err := rest.OpenAPI()
	if err != nil {
		return err
	}
	files["public/openapi.json"] = string(description)
	contract, err := os.ReadFile(filepath.Join(s.root, "docs", "asyncapi.yaml"))
	if err != nil {
		return err
	}
	files["public/asyncapi.yaml"] = string(contract)
	if err := os.CopyFS(filepath.Join(dir, "public", "images"), os.DirFS(filepath.Join(s.root, "docs", "images"))); err != nil {
		return err
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sidebar returns the navigation as VitePress reads it.
func (s *site) sidebar() ([]byte, error) {
	type item struct {
		Text string `json:"text"`
		Link string `json:"link"`
	}
	type shown struct {
		Text  string `json:"text"`
		Items []item `json:"items"`
	}
	var out []shown
	for _, section := range s.sections {
		one := shown{Text: section.Text}
		for _, source := range section.Pages {
			p, _ := s.page(source)
			one.Items = append(one.Items, item{p.title, "/" + p.name})
		}
		out = append(out, one)
	}
	return json.Marshal(out)
}

// index returns llms.txt: all pages, as models are told of them.
func (s *site) index() string {
	var b strings.Builder
	b.WriteString("# Skein\n\n> Event-sourced threads of AI agents on NATS JetStream.\n\n[All pages in one](/llms-full.txt)\n")
	for _, section := range s.sections {
		fmt.Fprintf(&b, "\n## %s\n\n", section.Text)
		for _, source := range section.Pages {
			p, _ := s.page(source)
			fmt.Fprintf(&b, "- [%s](/%s.md)\n", p.title, p.name)
		}
	}
	return b.String()
}

// whole returns llms-full.txt: the text of all pages.
func (s *site) whole() string {
	var b strings.Builder
	for _, p := range s.pages {
		fmt.Fprintf(&b, "<!-- /%s.md -->\n\n%s\n\n", p.name, strings.TrimSpace(p.text))
	}
	return b.String()
}

// relink changes the links of a page: to other pages into those of the site, and to other files of
// the repository into those of its host.
func (s *site) relink(p page) string {
	parts := strings.Split("\n"+p.text, "\n```")
	for i := 0; i < len(parts); i += 2 { // the others are code
		parts[i] = linkTarget.ReplaceAllStringFunc(parts[i], func(link string) string { return s.target(p, link) })
	}
	return strings.TrimPrefix(strings.Join(parts, "\n```"), "\n")
}

// target returns a link's target, as the site has it.
func (s *site) target(p page, link string) string {
	to := strings.TrimSuffix(strings.TrimPrefix(link, "]("), ")")
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") || strings.HasPrefix(to, "mailto:") {
		return link
	}
	name, anchor, has := strings.Cut(to, "#")
	if has {
		anchor = "#" + anchor
	}
	source := path.Join(path.Dir(p.source), name)
	if other, known := s.page(source); known {
		return "](/" + other.name + anchor + ")"
	}
	if source == "docs/asyncapi.yaml" {
		return "](/asyncapi.yaml){target=\"_self\"}"
	}
	if picture, is := strings.CutPrefix(source, "docs/"); is && strings.HasPrefix(picture, "images/") {
		return "](/" + picture + ")"
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(source)))
	kind := "blob"
	if err == nil && info.IsDir() {
		kind = "tree"
	}
	return "](" + sources + "/" + kind + "/main/" + source + anchor + ")"
}
