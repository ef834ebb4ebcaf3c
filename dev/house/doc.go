// Package house holds the tests that keep the architecture as docs/architecture.md
// describes it. It has no code that others could call.
//
// Each rule is a table or a small checker with its reason next to it; a failure
// names file, line and the fix. Each checker is also tested on a source that
// breaks its rule, so that a rule which no longer bites is noticed. A rule that
// is wrong is changed here, in its table and with a reason, and not worked
// around elsewhere.
//
//	rooms_test.go    who may import whom
//	purity_test.go   what the packages without I/O may not touch
//	names_test.go    names of files and packages, length of files, package comments
//	state_test.go    no state at package level
//	source_test.go   reads the source
//	requirements_test.go  no ids of requirements in product code
//	words_test.go    words that do not come back, and what to write instead
//	wrap_test.go     the width of prose in pages
//	outside_test.go  examples that programs can copy
//	copies_test.go   no copies of what dependencies contain
//	tracked_test.go  nothing large or built in the repository
//	typed_test.go    adds its types
package house
