// Package suggest finds what somebody who mistyped a name has probably meant.
package suggest

import "strings"

// Nearest returns the known name that is nearest to a mistyped one, or "" if none is
// near.
func Nearest(typed string, known []string) string {
	best, found := 1+max(1, len(typed)/3), ""
	for _, name := range known {
		d := distance(strings.ToLower(typed), strings.ToLower(name))
		if len(typed) > 2 && strings.HasPrefix(name, typed) {
			d = 1
		}
		if d < best {
			best, found = d, name
		}
	}
	return found
}

// distance returns the number of characters to insert, delete, replace or swap with a
// neighbour, to get from a to b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
