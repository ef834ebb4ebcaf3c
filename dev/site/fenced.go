package main

import "strings"

// fenced puts indented code between fences: VitePress shows no frame around it otherwise.
func fenced(text string) string {
	var out []string
	inFence, inCode, inList := false, false, false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		content := strings.TrimLeft(line, " ")
		indented := strings.HasPrefix(line, "    ") && content != ""
		switch {
		case strings.HasPrefix(content, "```"):
			inFence = !inFence
		case inFence:
		case inCode && !indented && !(content == "" && codeFollows(lines[i:])):
			inCode, out = false, append(out, "```")
		case !inCode && indented && !inList && (i == 0 || lines[i-1] == ""):
			inCode, out = true, append(out, "```text")
		}
		if !inFence && content != "" && !strings.HasPrefix(line, " ") {
			inList = strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || isNumbered(line)
		}
		if inCode {
			line = strings.TrimPrefix(line, "    ")
		}
		out = append(out, line)
	}
	if inCode {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

// codeFollows reports whether indented code goes on after blank lines.
func codeFollows(lines []string) bool {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			return strings.HasPrefix(line, "    ")
		}
	}
	return false
}

// isNumbered reports whether a line begins an item of a numbered list.
func isNumbered(line string) bool {
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return digits > 0 && strings.HasPrefix(line[digits:], ". ")
}
