package arguments

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/skein-threads/skein/internal/pattern"
)

// MaxPatterns bounds the total size, in instructions, of all regular expressions of one tool's
// parameters.
const MaxPatterns = 100_000

// BoundPatterns checks the size of the regular expressions of a JSON Schema before they are
// compiled, and returns their total number of instructions. It ignores expressions that Go cannot
// parse. Everything in the position of an expression counts, except within a constant.
func BoundPatterns(tree any) (int, error) {
	total := 0
	if err := addPatterns(tree, &total); err != nil {
		return 0, err
	}
	if total > MaxPatterns {
		return 0, fmt.Errorf("patterns that are too large: together they have %d instructions, and %d are allowed; counted repetitions such as .{999} count each time", total, MaxPatterns)
	}
	return total, nil
}

func addPatterns(tree any, total *int) error {
	add := func(expression string) error {
		n, err := pattern.Size(expression)
		var large *pattern.SizeError
		if errors.As(err, &large) {
			return fmt.Errorf("the pattern %.80q, which is too large: %w", expression, err)
		}
		*total += n
		return nil
	}
	switch t := tree.(type) {
	case []any:
		for _, v := range t {
			if err := addPatterns(v, total); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(t)) {
			v := t[name]
			if text, ok := v.(string); ok && name == "pattern" {
				if err := add(text); err != nil {
					return err
				}
			}
			if below, ok := v.(map[string]any); ok && name == "patternProperties" {
				for _, expression := range slices.Sorted(maps.Keys(below)) {
					if err := add(expression); err != nil {
						return err
					}
				}
			}
			if err := addPatterns(v, total); err != nil {
				return err
			}
		}
	}
	return nil
}
