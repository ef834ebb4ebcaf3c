package arguments

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const (
	// maxInPlace bounds how many nested schemas may apply to the same value: the library recurses
	// for each.
	maxInPlace = 64
	// maxSteps bounds the cost of patterns in one check: their instructions times the bytes that
	// they are tried on.
	maxSteps = 1 << 27
	// maxWork bounds the cost of one check, in schemas applied plus members visited. Without it, a
	// schema of a few lines could run for years.
	maxWork = 50_000
)

// deepest returns the length of the longest chain of schemas that apply to the same value. It
// stops counting a little over maxInPlace.
func deepest(root *jsonschema.Schema) int {
	rows := map[*jsonschema.Schema]int{}
	longest := 0
	for _, s := range reached(root) {
		longest = max(longest, row(s, rows))
	}
	return longest
}

// reached lists a schema and all schemas that it contains or refers to.
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

// row returns the length of the longest chain of schemas, from s on, that apply to the same value
// as s.
func row(s *jsonschema.Schema, rows map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if n, ok := rows[s]; ok {
		return n
	}
	rows[s] = maxInPlace + 1 // a path that leads back to s is a cycle
	longest := 0
	for _, next := range inPlace(s) {
		longest = max(longest, row(next, rows))
	}
	rows[s] = min(longest+1, maxInPlace+1)
	return rows[s]
}

// inPlace lists the direct subschemas of s that apply to the same value; some are nil.
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

// inside lists the direct subschemas of s that apply to members of the value; some are nil.
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

// work counts the cost of a check. It is a vocabulary extension: the library calls it for each
// schema that it applies, after the subschemas.
type work struct {
	left  int
	steps int // left for patterns
	names int // the number of instructions of the largest patternProperties
}

// Compile returns the charge for applying a schema: one for itself and one for each subschema.
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

// tooMuch is the value of the panic that stops the library, which has no other way to be stopped.
type tooMuch struct{}

// Validate charges for applying a schema to a value.
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
