package main

import (
	"regexp"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// legend says how to read the fields of a page; its argument is the page of the forms.
const legend = `**Bold** fields are required. A type such as id or time is a text of that [form](%s#forms-of-texts).
An integer is at least 0. A limit counts the characters of a text and the elements of a list.`

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

// kindOf is the type of a field as the pages show it. Limits bind callers, so that those of
// what Skein sends are omitted.
func kindOf(f schema.Description, output bool) string {
	kind := strings.ReplaceAll(f.Type, "one of "+strings.Join(events.DefinitionKind("").Enum(), ", "), "kind of [definition](definitions.md)")
	if output {
		return bounds.ReplaceAllString(kind, "")
	}
	return strings.ReplaceAll(kind, "integer ≥ 0", "integer")
}

// obvious matches a name and its text if the page says as much at its top, or the name does.
var obvious = regexp.MustCompile(`^(id: The (\w+'s )?id|createdAt: The time of creation|from: The state before|to: The state (after|to move to)|status: The state of the \w+'s machine|\w+: Only \w+ (of|in) this \w+)\.$`)

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
	return obvious.MatchString(last+": "+f.Doc) || made.MatchString(f.Name+": "+f.Doc) && strings.HasPrefix(f.Doc, "The "+name)
}
