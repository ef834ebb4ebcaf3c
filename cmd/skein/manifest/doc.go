// Package manifest reads files of definitions, YAML or JSON, and records the place
// of every value, so that a refusal names the file and the line.
//
// # What it promises
//
//   - A file holds any number of definitions: YAML documents, JSON values one
//     after another, or lists of them. A definition is an object with a kind; its
//     other members are the definition itself, or its one other member is
//     definition, and perhaps name, as in the command definition.apply.
//   - Numbers and texts survive: 9007199254740993, 1.0 and 1e3 stay as they are
//     written, and no, on and 2026-02-20 are texts, as YAML 1.2 says.
//   - Anchors and aliases are followed, within bounds. What JSON lacks (merge
//     keys, tags other than !!str, .inf, 010) is refused.
//
// # What it does not
//
// It does not know whether what a definition refers to is there; the server does.
package manifest
