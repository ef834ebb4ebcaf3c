package markdown

import "strings"

// Limits above which a text is not read as Markdown: the parser's work or its result would grow
// with the square of the text, or with its depth.
const (
	maxMarkers = 32      // of lists and quotes that one line opens or continues
	maxIndent  = 256     // columns before a line's text
	maxCells   = 100_000 // of tables
	maxBlock   = 32 << 10
	maxOpen    = 2_000 // characters in one block that may open a span: brackets, stars, quotes of code
)

// expensive reports whether a text is to be shown as it is.
func expensive(text string) bool {
	if len(text) > maxSource {
		return true
	}
	columns, lines, block, opening := 0, 0, 0, 0
	for line := range strings.Lines(text) {
		lines++
		indent, markers := lead(line)
		if indent > maxIndent || markers > maxMarkers {
			return true
		}
		if strings.TrimSpace(line) == "" {
			block, opening = 0, 0
		}
		block += len(line)
		opening += spans(line)
		if block > maxBlock || opening > maxOpen {
			return true
		}
		if delimiter(line) {
			columns = max(columns, strings.Count(line, "|")+1)
		}
	}
	return columns*lines > maxCells
}

// lead returns how far a line's text is indented, and how many markers of lists and quotes
// precede it.
func lead(line string) (indent, markers int) {
	line = strings.TrimRight(line, " \t\r\n")
	if strings.Trim(line, " \t-") == "" || strings.Trim(line, " \t*") == "" {
		return 0, 0 // a rule
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ':
			indent++
		case c == '\t':
			indent += 4
		case strings.IndexByte(">-+*", c) >= 0:
			indent++
			markers++
		case c >= '0' && c <= '9', c == '.', c == ')':
			indent++
			if c == '.' || c == ')' {
				markers++
			}
		default:
			return indent, markers
		}
	}
	return indent, markers
}

// delimiter reports whether a line may be the one between a table's head and its body.
func delimiter(line string) bool {
	return strings.Contains(line, "-") && strings.Trim(line, " \t\r\n|:->") == ""
}

// spans returns how many characters of a line may open a span.
func spans(line string) (n int) {
	for i := range len(line) {
		switch line[i] {
		case '[', '*', '_', '~', '<', '`':
			n++
		}
	}
	return n
}
