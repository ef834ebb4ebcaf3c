package arguments

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const (
	// maxInPlace bounds how many schemas in a row may look at the same value:
	// the library calls itself for each.
	maxInPlace = 64
	// maxSteps bounds what patterns may cost in one check: instructions tried on
	// bytes.
	maxSteps = 1 << 27
	// maxWork bounds what one check may cost, in schemas applied and members
	// looked at. A schema of a few lines can ask for more than a lifetime.
	maxWork = 50_000
)

// deepest returns the length of the longest row of schemas that look at the same value,
// counted to a little over maxInPlace.
func deepest(root *jsonschema.Schema) int {
	rows := map[*jsonschema.Schema]int{}
	longest := 0
	for _, s := range reached(root) {
		longest = max(longest, row(s, rows))
	}
	return longest
}

// reached lists a schema and all that it leads to.
func reached(root *jsonschema.Schema) []*jsonschema.Schema {
	known := map[*jsonschema.Schema]bool{root: true}
	all := []*jsonschema.Schema{root}
	for at := 0; at < len(all); at++ {
		for _, below := range append(inPlace(all[at]), inside(all[at])...) {
			if below != nil && !known[below] {
				known[below] = true
				all = append(all, below)
			}
		}
	}
	return all
}

// row returns how many schemas look at a value that s looks at.
func row(s *jsonschema.Schema, rows map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if n, ok := rows[s]; ok {
		return n
	}
	rows[s] = maxInPlace + 1 // a way back to here is a circle
	longest := 0
	for _, next := range inPlace(s) {
		longest = max(longest, row(next, rows))
	}
	rows[s] = min(longest+1, maxInPlace+1)
	return rows[s]
}

// inPlace lists the schemas that look at the same value as s; some are nil.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}
	out = slices.Concat(out, s.AllOf, s.AnyOf, s.OneOf)
	out = slices.AppendSeq(out, maps.Values(s.DependentSchemas))
	for _, dependency := range s.Dependencies {
		if next, ok := dependency.(*jsonschema.Schema); ok {
			out = append(out, next)
		}
	}
	return out
}

// inside lists the schemas that look at members of the value; some are nil.
func inside(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems, s.ContentSchema}
	out = append(out, s.PrefixItems...)
	out = slices.AppendSeq(out, maps.Values(s.Properties))
	out = slices.AppendSeq(out, maps.Values(s.PatternProperties))
	for _, other := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch other := other.(type) {
		case *jsonschema.Schema:
			out = append(out, other)
		case []*jsonschema.Schema:
			out = append(out, other...)
		}
	}
	return out
}

// work counts what a check costs, as an extension that the library asks for
// each schema it applies, after what lies below it.
type work struct {
	left  int
	steps int // of patterns that may still be made
	names int // instructions of the largest patternProperties
}

// Compile counts what a schema costs: itself and the schemas in it.
func (w *work) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	cost := 1
	for _, v := range schema {
		switch v := v.(type) {
		case []any:
			cost += len(v)
		case map[string]any:
			cost += len(v)
		}
	}
	return charge{w, cost}, nil
}

type charge struct {
	work *work
	cost int
}

// tooMuch is thrown through the library, which has no other way to be stopped.
type tooMuch struct{}

// Validate takes the cost of a schema applied to a value.
func (c charge) Validate(_ jsonschema.ValidationContext, value any) error {
	cost := c.cost
	switch v := value.(type) {
	case map[string]any:
		cost += len(v)
	case []any:
		cost += len(v)
	}
	if c.work.left -= cost; c.work.left < 0 {
		panic(tooMuch{})
	}
	return nil
}
