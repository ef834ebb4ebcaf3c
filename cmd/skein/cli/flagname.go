package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/events"
)

// inFlags returns the message of a refusal in the words of the command line: where the refusal is of
// a field that a flag or an argument of the command sets, that is named, and not the field's path in
// the request.
func inFlags(cmd *cobra.Command, refusal *events.Error) string {
	message := refusal.Message
	if refusal.Details == nil || refusal.Details.Path == "" || cmd == nil {
		return message
	}
	path := refusal.Details.Path
	named := inputName(cmd, path)
	if named == "" {
		return message
	}
	if rest, is := strings.CutPrefix(message, path+":"); is {
		return named + ":" + rest
	}
	if strings.Contains(message, named) {
		return message
	}
	return named + ": " + message
}

// wordStart is where a word begins in a name such as keyPrefix.
var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// inputName returns the flag or the argument of a command that sets the field at a path of the
// request, with the rest of the path; empty if none does.
func inputName(cmd *cobra.Command, path string) string {
	field, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "/data"), "/"), "/")
	name := strings.ToLower(wordStart.ReplaceAllString(field, "$1-$2"))
	short := strings.TrimSuffix(name, "-id")
	_, last, _ := strings.Cut(name, "-") // agentMode is --mode
	found := ""
	for _, candidate := range []string{name, short, last} {
		if f := cmd.Flags().Lookup(candidate); f != nil && found == "" {
			found = "--" + f.Name
		}
	}
	if argument := strings.ToUpper(short); found == "" && slices.Contains(strings.FieldsFunc(cmd.Use, func(r rune) bool { return strings.ContainsRune(" []|.", r) }), argument) {
		found = argument
	}
	if found != "" && rest != "" {
		found += " at /" + rest
	}
	return found
}
