package page

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/skein-threads/skein/console/markdown"
	"github.com/skein-threads/skein/events"
)

// layouts are the templates that all pages share.
//
//go:embed templates/*.html
var layouts embed.FS

// openTemplates parses the templates. A name that two of them define is an error.
func (s *server) openTemplates() error {
	funcs := Funcs()
	maps.Copy(funcs, s.Funcs)
	s.templates = template.New("console").Funcs(funcs)
	for _, from := range []fs.FS{layouts, s.Templates} {
		files, err := fs.Glob(from, "templates/*.html")
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := s.addTemplates(from, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) addTemplates(from fs.FS, file string) error {
	text, err := fs.ReadFile(from, file)
	if err != nil {
		return err
	}
	own, err := template.New(file).Funcs(s.Funcs).Funcs(Funcs()).Parse(string(text))
	if err != nil {
		return err
	}
	for _, t := range own.Templates() {
		if t.Name() == file {
			continue
		}
		if s.templates.Lookup(t.Name()) != nil {
			return fmt.Errorf("%s defines the template %q, as another file does", file, t.Name())
		}
		if _, err := s.templates.AddParseTree(t.Name(), t.Tree); err != nil {
			return err
		}
	}
	return nil
}

// Funcs returns the functions of all templates:
//
//	time T     an element with a time, given as RFC 3339, a time.Time or microseconds: the script
//	           shows it in the reader's zone, and the exact value on hover
//	short ID   the end of an id, enough to tell it from its neighbours
//	bytes N    a size in bytes, as people read it
//	number N   a number with spaces between thousands
//	json V     JSON with line ends and indents, or the beginning of a long one
//	whole V    all of it
//	thread ID  the address of a thread, and of its tab: thread ID "/files"
//	status S   a mark with a state, in the colour of its meaning
//	plural N "thread" "threads"
//	dict "name" value ...   the data of a template that needs several
func Funcs() template.FuncMap {
	return template.FuncMap{
		"time": timeElement, "short": Short, "bytes": bytesText, "number": numberText, "json": ShowJSON, "whole": IndentJSON,
		"thread": threadAddress, "status": statusElement, "plural": plural, "dict": dict, "root": func() string { return Root },
	}
}

// threadAddress returns the address of a thread, or of one of its tabs.
func threadAddress(id string, tab ...string) string { return LinkThread(id, strings.Join(tab, "")) }

// timeElement returns an element with a time. Without the script it shows UTC.
func timeElement(value any) (template.HTML, error) {
	var at time.Time
	switch v := value.(type) {
	case time.Time:
		at = v
	case events.Time:
		return timeElement(v.String())
	case string:
		if v == "" {
			return "", nil
		}
		var err error
		if at, err = time.Parse(time.RFC3339Nano, v); err != nil {
			return "", fmt.Errorf("%q is not a time: %w", v, err)
		}
	case int64:
		if v == 0 {
			return "", nil
		}
		at = time.UnixMicro(v)
	default:
		return "", fmt.Errorf("%T is not a time", value)
	}
	at = at.UTC()
	exact := at.Format("2006-01-02T15:04:05.000000Z")
	return template.HTML(`<time datetime="` + exact + `" title="` + exact + `">` + at.Format("2006-01-02 15:04:05") + `</time>`), nil
}

// Short returns the end of an id, enough to tell it from its neighbours.
func Short(id string) string {
	if len(id) <= 12 {
		return id
	}
	return "…" + id[len(id)-8:]
}

func bytesText(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
	default:
		return fmt.Sprintf("%.1f GB", float64(n)/1000_000_000)
	}
}

// numberText returns a number with narrow spaces between its thousands.
func numberText(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// IndentJSON returns JSON with line ends and indents, in its order; anything that is no JSON, or
// is nested too deeply, is returned unchanged.
func IndentJSON(raw events.JSON) string { return written(raw) }

// maxJSON is how many bytes of a document a page shows.
const maxJSON = 128 << 10

// ShowJSON returns the beginning of JSON, with line ends and indents, for the inside of an element:
// its quotes stay, since they are many.
func ShowJSON(raw events.JSON) template.HTML {
	text, rest := markdown.Cut(IndentJSON(raw), maxJSON)
	more := ""
	if rest > 0 {
		more = "\n… " + numberText(rest) + " more bytes are not shown here"
	}
	return template.HTML(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text) + more)
}

// tones maps states to colours: fine, active, waiting or failed.
func tones() map[string]string {
	return map[string]string{
		"open": "ok", "completed": "ok", "granted": "ok", "resolved": "ok", "success": "ok", "done": "ok",
		"streaming": "active", "executing": "active", "running": "active", "stream_reasoning": "active", "in_progress": "active",
		"waiting": "wait", "queued": "wait", "pending": "wait", "approval": "wait", "worker": "wait",
		"failed": "bad", "denied": "bad", "error": "bad", "interrupted": "bad",
	}
}

func statusElement(state any) template.HTML {
	text := fmt.Sprint(state)
	if text == "" {
		return ""
	}
	tone := tones()[text]
	if tone == "" {
		tone = "plain"
	}
	return template.HTML(`<span class="status ` + tone + `">` + template.HTMLEscapeString(text) + `</span>`)
}

func plural(n any, one, many string) string {
	if count := fmt.Sprint(n); count != "1" {
		return numberText(n) + " " + many
	}
	return "1 " + one
}

func dict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is not a name", pairs[i])
		}
		out[name] = pairs[i+1]
	}
	return out, nil
}
