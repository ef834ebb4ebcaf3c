// Package retry holds the pauses between attempts: how they grow, how they are spread,
// and when they end.
//
// A [Policy] is a plain value. [Policy.Start] begins a series of attempts, and
// [Attempts.Wait] pauses between two of them; [Do] is the loop for a function that
// returns an error. [Sleep] is one pause that ends with its context.
//
// Every series is bounded: by its context, by [Policy.Limit], or by both. The package
// imports only the standard library and reads the time only from package time, so it
// runs in a testing/synctest bubble. What may enter is what every room needs to wait
// before it tries again. Which errors are worth another attempt is for the caller to
// say.
package retry
