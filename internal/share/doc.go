// Package share divides what a process has little of among tenants, so that no
// tenant can take all of it.
//
// A [Pool] has places: for runs, uploads, searches. A tenant may take another
// place only while at least as many are free as it holds. Alone it gets half of
// them; of two that take all they can, each gets a third; and one that comes later
// always finds some free. An operator may set a tenant's most besides. Of those that
// wait, the tenant that holds the fewest is next.
//
// [Rates] counts how often each tenant does something.
package share
