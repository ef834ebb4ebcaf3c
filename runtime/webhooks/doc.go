// Package webhooks sends the events of tenants to the URLs of their webhooks.
//
// # What it promises
//
//   - Every event that a webhook is of is sent until its endpoint accepts it: at least
//     once, across any crash, since what was dispatched is stored before the position in
//     the log.
//   - The events of one thread arrive in their order, one after the other. An event that
//     is not accepted delays those of its thread alone.
//   - A webhook has a limited number of requests in flight, and so have all tenants together,
//     of whose places each leaves some to others; a webhook whose endpoint accepts nothing makes one attempt at a time, with backoff. So it delays
//     no other.
//   - Data of events is sent only if the webhook asks for it, and never once the thread is
//     purged: it is read from the log for every attempt.
//
// # What it does not
//
// It gives up no event: a webhook is caught up, behind, or removed. It keeps no data of
// events. After a restart, and after a failure in the middle of a commit, events arrive
// again: receivers recognize them by their id.
//
// # How it works
//
// One [Hub] of the installation runs, under the lease [Lease]. It follows the log. A change
// of a definition makes, changes or removes a webhook; of any other commit it notes, for
// each webhook that is of one of its events, that the thread is behind ([lane]). A
// webhook's scheduler takes the lanes that are due, reads their commits from the log, and
// sends the events. When too many threads are behind, the webhook stops to note them, and
// later reads the log itself from there.
package webhooks
