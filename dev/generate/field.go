package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// legend says how to read the fields of all pages; the page of commands has it.
func legend() string { return strings.ReplaceAll(legendText, "~", "`") }

const legendText = `## How to read the fields

**Bold** fields are required. A type such as id or time is a text of that [form](#forms-of-texts).
T[] is a list of T, a|b is one of these values, JSON is any, and a field without a type is a text. A
limit alone counts the characters of a text, that of a list its elements. An integer is at least 0;
microseconds and milliseconds are integers that count from the Unix epoch.

Some fields mean the same everywhere: an id of what a command makes is one that the caller chooses, an absent
~contextId~ the thread's default context, ~metadata~ the caller's own fields, a ~path~ begins at the
thread's root, ~silent~ hides from people but not from the model, absent ~rights~ are the whole
tenant's, and ~errorText~ says why something failed.`

// nameOf is the name of a field as the pages show it.
func nameOf(f schema.Description) string {
	if f.Required {
		return "**`" + f.Name + "`**"
	}
	return "`" + f.Name + "`"
}

// namesOf lists fields.
func namesOf(fields []schema.Description) string {
	var names []string
	for _, f := range fields {
		names = append(names, nameOf(f))
	}
	return strings.Join(names, ", ")
}

// bounds are the limits in the type of a field.
var bounds = regexp.MustCompile(` (?:[≤≥] [0-9]+|[0-9]+-[0-9]+)`)

// kindOf is the type of a field as the pages show it: a|b for one of some values, T[] for a list.
// Limits bind callers, so that those of what Skein sends are omitted.
func (p *page) kindOf(f schema.Description) string {
	kind := strings.ReplaceAll(f.Type, "one of "+strings.Join(events.DefinitionKind("").Enum(), ", "), "[kind](definitions.md)")
	kind = strings.ReplaceAll(kind, "any JSON", "JSON")
	if p.output {
		kind = bounds.ReplaceAllString(kind, "")
	} else {
		kind = strings.TrimPrefix(strings.ReplaceAll(kind, "integer ≥ 0", "integer"), "text ")
	}
	if name := p.shapes.named(f.Holds); name != "" {
		kind = strings.Replace(kind, "object", fmt.Sprintf("[%s](%s#%s)", name, p.sections(), anchor(name)), 1)
	}
	if element, of, ok := strings.Cut(kind, " of "); ok && strings.HasPrefix(element, "list") {
		return oneOf(of) + "[]" + strings.TrimPrefix(element, "list")
	}
	return oneOf(kind)
}

// sinceEpoch moves the unit of a time from the text of a field to its kind.
func sinceEpoch(f schema.Description, kind string) (schema.Description, string) {
	if m := unit.FindStringSubmatch(f.Doc); m != nil && kind == "integer" {
		f.Doc, kind = strings.Replace(f.Doc, m[0], "", 1), m[1]
	}
	return f, kind
}

// unit matches what the text of a field says of the unit of a time.
var unit = regexp.MustCompile(`,? in (microseconds|milliseconds) since (?:the epoch|1970)`)

// isObsolete reports whether a field is only in what earlier builds wrote or read.
func isObsolete(f schema.Description) bool {
	return strings.HasPrefix(f.Doc, "In older logs: ") || strings.HasPrefix(f.Doc, "The old name of ")
}

// terse omits from the text of a field what the top of the page says of all such fields.
func terse(doc string) string {
	return strings.NewReplacer("; absent: the whole tenant", "", ", if the caller chooses it", "").Replace(doc)
}

// oneOf joins the values of a type that lists them.
func oneOf(kind string) string {
	values, ok := strings.CutPrefix(kind, "one of ")
	if !ok {
		return kind
	}
	values, null := strings.CutSuffix(values, " or null")
	values = strings.ReplaceAll(values, ", ", "|")
	if null {
		values += "|null"
	}
	return values
}

// obvious matches a name and its text if the page says as much at its top, or the name does.
var obvious = regexp.MustCompile(`^(id: The (\w+'s )?id|createdAt: The time of creation|from: The state before|to: The state (after|to move to)|status: (The state of the \w+'s machine|Its first state)|id: The id, if the caller chooses it|contextId: The context; the default one if absent|metadata: The caller's own fields|path: From the thread's root|errorText: Why it failed|createdAt: When it was made|updatedAt: When it last changed, if it did|role: Who speaks|kind: What (it defines|is defined)|\w+: Only \w+ (of|in) this \w+)\.$`)

// made matches what a command made, in its reply, and a text that says no more.
var made = regexp.MustCompile(`^result\.\w+: The \w+ that was [a-z ]+\.$`)

// restates reports whether the text of a field says no more than its name: "The item." of itemId.
func restates(f schema.Description) bool {
	last := f.Name[strings.LastIndex(f.Name, ".")+1:]
	name := strings.ToLower(strings.TrimSuffix(last, "Id"))
	switch f.Doc {
	case "The " + name + ".", "Its " + name + ".", "The " + name + " it belongs to.":
		return true
	}
	if obvious.MatchString(last+": "+f.Doc) || made.MatchString(f.Name+": "+f.Doc) && strings.HasPrefix(f.Doc, "The "+name) {
		return true
	}
	own := strings.ToLower(last)
	for _, word := range strings.FieldsFunc(strings.ToLower(f.Doc), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if stem := strings.TrimSuffix(word, "s"); !filler.MatchString(word) && !strings.Contains(own, stem) {
			return false
		}
	}
	return true
}

// filler are the words of a text that add nothing to a name and a type.
var filler = regexp.MustCompile(`^(the|an?|it|its|they|these|those|that|which|who|each|all|any|one|is|be|was|were|are|has|had|of|in|to|from|for|by|on|at|as|with|when|how|many|there|this|what|if|own|begins?|began|ends?|ended|called|caller|number|order|list|text|kind|names?|ids?|time)$`)
