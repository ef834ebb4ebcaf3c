package events

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds of a normalised path of a thread's files.
const (
	MaxPathBytes  = 4096 // of a whole path
	MaxNameBytes  = 255  // of each name in it
	MaxPathDepth  = 64   // names in a path
	FileRoot      = "/"  // the path of the root, which always exists
	pathSeparator = "/"
)

// FilePath returns the canonical form of a path of a thread's files: NFC, from the
// root, with one slash before each name and none at the end; the root is "/".
//
//   - A leading slash may be missing: "a" is "/a". Slashes may be repeated and
//     trailing: "/a//b/" is "/a/b". "" is "/".
//   - Case matters: "/A" and "/a" are two files. Unicode forms do not: the path
//     is normalised to NFC, so that names that look the same are the same file.
//   - Refused are the names "." and "..", invalid UTF-8, backslashes, and control
//     characters (NUL, line ends, and those that change the direction of text).
//   - Refused is a path longer than [MaxPathBytes], with a name longer than
//     [MaxNameBytes], or deeper than [MaxPathDepth].
//
// The error is an invalid_request for the field path.
func FilePath(path string) (string, error) {
	const field = "/path"
	if len(path) > 2*MaxPathBytes { // NFC can shorten it, but not by half
		return "", Invalid(field, "a path of %d bytes; at most %d are allowed", len(path), MaxPathBytes)
	}
	if !utf8.ValidString(path) {
		return "", Invalid(field, "a path is UTF-8, and this is not")
	}
	path = norm.NFC.String(path)
	for _, r := range path {
		switch {
		case r == '\\':
			return "", Invalid(field, "a path has no backslashes; names are divided by /")
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return "", Invalid(field, "a path has no control characters, and this has %U", r)
		}
	}
	var out strings.Builder
	depth := 0
	for name := range strings.SplitSeq(path, pathSeparator) {
		switch {
		case name == "":
			continue
		case name == "." || name == "..":
			return "", Invalid(field, "a path has no name %q: it is given from the root, with nothing to go back from", name)
		case len(name) > MaxNameBytes:
			return "", Invalid(field, "a name of %d bytes in the path; at most %d are allowed", len(name), MaxNameBytes)
		}
		if depth++; depth > MaxPathDepth {
			return "", Invalid(field, "a path of more than %d names", MaxPathDepth)
		}
		out.WriteString(pathSeparator)
		out.WriteString(name)
	}
	switch {
	case out.Len() == 0:
		return FileRoot, nil
	case out.Len() > MaxPathBytes:
		return "", Invalid(field, "a path of %d bytes; at most %d are allowed", out.Len(), MaxPathBytes)
	}
	return out.String(), nil
}

// SplitPath splits a path in the form of [FilePath] into directory and name. Both are empty
// for the root.
func SplitPath(path string) (dir, name string) {
	if path == FileRoot {
		return "", ""
	}
	at := strings.LastIndexByte(path, '/')
	if at == 0 {
		return FileRoot, path[1:]
	}
	return path[:at], path[at+1:]
}
