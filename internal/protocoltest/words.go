package protocoltest

import "regexp"

// InternalWords returns what no refusal has: the commands that are made of a request, the types that it
// is decoded into, and the fields of other protocols, which are patterns.
func InternalWords(fields string) *regexp.Regexp {
	return regexp.MustCompile(`/data\b|/commands/|\bcommand \d|thread\.commit|item\.create|push\.set|\*?(mcp|events|json|jsontext|jsonrpc|acp|a2a|chat|agui|completions|openresponses|transform)\.[A-Z]\w+|` +
		`Go (value|type|struct|\[)|json: |jsontext:|unmarshal|RawMessage|main\.|` + fields)
}
