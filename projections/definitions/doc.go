// Package definitions reads the definitions of tenants: models, prompts, tools, agents
// and contexts.
//
// # What it promises
//
//   - [Definitions] returns what a definition is now from memory where it can, and is
//     told of changes by the bucket itself. What it returns may lag behind the log by
//     as much as the read model does, which is usually milliseconds.
//   - A definition with its version never changes: a run that notes the version can ask
//     for just that one, also when it was removed since.
//
// # What it does not
//
// It changes no definition: the command definition.apply does. It does not know what a
// definition is used for.
//
// # What may enter
//
// Code that reads definitions, for queries and for the runtime. It imports
// projections/buckets and what is below it.
package definitions
